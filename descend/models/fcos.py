"""FCOS: no anchors. Every point inside a box says how far its four sides are.

    C3..C5 = backbone(x)        P3..P7 = pyramid(C)        towers with group norm, shared by the levels
    of the point p of a cell with stride s: logits (K),  d = ReLU(conv) in strides: box = p ∓ s d,  centreness c
    score = √(σ(logit) σ(c))    points far from the middle of their box are trusted less

Each level answers for objects of its own size (`losses/detection/fcos.py`). `SIZES` is torchvision's fcos_resnet50_fpn
with its 91 classes (the first is never used): 32,269,600 parameters with frozen batch norms, 32,322,720 with theirs;
`TORCHVISION` has its names. Its points are at the corners of the cells (`corner` 0); the books' are at (j + ½) s.

Systems: feature-pyramid-network
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.models._regions import Backbone, Norm, best_of_levels, lay_points, prefix
from descend.models.faster_rcnn import FPN
from descend.models.resnet import TORCHVISION as RESNET
from descend.models.resnet import ResNetConfig
from descend.nn.detection.fpn import ConvLevels, SmoothedPyramid, lay_out
from descend.nn.detection.heads import start_unlikely
from descend.nn.detection.towers import GroupNormTower, predict
from descend.ops.boxes import clip_boxes
from descend.ops.detection.distances import distances_to_boxes
from descend.ranges import Count, Depth, NonNegative, PositiveShare, Share, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename_pair


@dataclass(frozen=True)
class FCOSConfig:
    """The defaults are those of ResNet-50. A recipe takes channels and labels from its data."""

    channels: Width = 3
    stem: Width = 64
    widths: tuple[Width, ...] = (256, 512, 1024, 2048)
    """Maps of the backbone's stages; the pyramid begins at the second, of stride 8."""
    depths: tuple[Depth, ...] = (3, 4, 6, 3)
    block: str = "bottleneck"
    """basic or bottleneck"""
    pyramid: Width = 256
    """Maps of every level."""
    depth: Depth = 4
    """Convolutions of a tower."""
    corner: Share = 0.5
    """Where in its cell a point is; 0: at its corner."""
    candidates: Count = 1000
    """Of each level, before NMS."""
    tau: PositiveShare = 0.6
    """IoU above which the better of two objects of a class suppresses the other."""
    epsilon: NonNegative = 1e-5
    """Of the batch norms."""
    norm: Norm = "batch"
    """batch, or frozen: the backbone's moments are those of the weights it starts from"""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.widths) < 2:
            raise ValueError("give at least two stages: the pyramid begins at the second")

    def backbone(self) -> ResNetConfig:
        """The residual network."""
        return ResNetConfig(self.channels, self.stem, self.widths, self.depths, self.block)


class PointsFound(NamedTuple):
    """What is said of n points of b images."""

    logits: Tensor
    """(b, n, K)"""
    distances: Tensor
    """To the left, top, right and bottom side, in strides (b, n, 4)."""
    centreness: Tensor
    """Logits (b, n)."""
    points: Tensor
    """(n, 2) in pixels of the input."""
    strides: Tensor
    """(n)"""
    size: Tensor
    """Height and width of the input."""


class FCOS(Pretrained):
    """images (b, channels, h, w) -> classes, distances and centreness of all points"""

    Config = FCOSConfig

    def __init__(self, config: FCOSConfig):
        super().__init__()
        c = self.config = config
        self.backbone = Backbone(c.backbone(), c.epsilon, c.norm)
        self.pyramid = SmoothedPyramid(c.widths[1:], c.pyramid, ConvLevels(c.pyramid))
        self.class_tower = GroupNormTower(c.pyramid, c.depth)
        self.box_tower = GroupNormTower(c.pyramid, c.depth)
        self.classes = start_unlikely(predict(c.pyramid, len(c.labels)))
        self.distances = predict(c.pyramid, 4)
        self.centreness = predict(c.pyramid, 1)
        nn.init.ones_(self.distances.bias)  # type: ignore[arg-type]
        self.stride = 2 ** (len(c.widths) + 1)

    def forward(self, x: Tensor) -> PointsFound:
        maps = self.pyramid(self.backbone.pyramid(x)[1:])
        logits = [lay_out(self.classes(self.class_tower(m)), len(self.config.labels)) for m in maps]
        towers = [self.box_tower(m) for m in maps]
        distances = [lay_out(self.distances(t).relu(), 4) for t in towers]
        centreness = [lay_out(self.centreness(t), 1)[..., 0] for t in towers]
        placed = [lay_points(m, x, self.config.corner) for m in maps]
        strides = [p.new_full((len(p),), float(stride)) for p, stride in placed]
        return PointsFound(
            torch.cat(logits, dim=1),
            torch.cat(distances, dim=1),
            torch.cat(centreness, dim=1),
            torch.cat([p for p, _ in placed]),
            torch.cat(strides),
            torch.tensor(x.shape[2:]),
        )

    def decode(self, found: PointsFound, least: float = 0.001, most: int = 100) -> Boxes:
        """Objects, best first, after NMS of each class."""
        height, width = found.size.tolist()
        boxes = distances_to_boxes(found.distances.float(), found.points, found.strides)
        scores = (found.logits.float().sigmoid() * found.centreness.float().sigmoid()[..., None]).sqrt()
        counts, c = torch.unique_consecutive(found.strides, return_counts=True)[1].tolist(), self.config
        boxes = clip_boxes(boxes, width, height)
        return best_of_levels(boxes, scores, counts, c.candidates, c.tau, least, most)


COCO = Labels(tuple(f"LABEL_{k}" for k in range(91)))
SIZES = {"fcos-resnet-50": FCOSConfig(corner=0.0, labels=COCO)}
PARAMETERS = {"fcos-resnet-50": 32_322_720}
TINY = FCOSConfig(
    stem=6,
    widths=(8, 12),
    depths=(1, 1),
    block="basic",
    pyramid=8,
    depth=2,
    labels=Labels(("a", "b", "c")),
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 48, 64, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("FCOS", parts={"labels": Labels})

TORCHVISION = [
    *prefix(RESNET, "backbone", "backbone.body"),
    *FPN,
    *rename_pair("pyramid.coarser.p6", "backbone.fpn.extra_blocks.p6"),
    *rename_pair("pyramid.coarser.p7", "backbone.fpn.extra_blocks.p7"),
    *(
        rule
        for ours, theirs in (("class_tower", "head.classification_head"), ("box_tower", "head.regression_head"))
        for i in range(9)
        for rule in (
            *rename_pair(f"{ours}.convs.{i}", f"{theirs}.conv.{3 * i}"),
            *rename_pair(f"{ours}.norms.{i}", f"{theirs}.conv.{3 * i + 1}"),
        )
    ),
    *rename_pair("classes", "head.classification_head.cls_logits"),
    *rename_pair("distances", "head.regression_head.bbox_reg"),
    *rename_pair("centreness", "head.regression_head.bbox_ctrness"),
]
"""Names of torchvision's file (`descend.weights.flat`)."""
