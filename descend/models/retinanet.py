"""RetinaNet: one stage on a feature pyramid, 9 anchors at every cell, and a loss that does not drown in background.

    C3..C5 = backbone(x)        P3..P7 = pyramid(C), P6 and P7 by convolutions of stride 2
    logits = tower_c(P_i), K an anchor        offsets = tower_b(P_i), 4 an anchor        towers shared by the levels
    score = σ(logit)            objects: the best candidates of each level, decoded, then NMS of each class

Each class has a sigmoid of its own and there is no background class. Trained by the focal loss
(`losses/detection/focal.py`). `SIZES` is torchvision's retinanet_resnet50_fpn with its 91 classes (the first is never
used): 34,014,999 parameters with frozen batch norms, 34,068,119 with theirs; `TORCHVISION` has its names.

Systems: focal-loss, feature-pyramid-network
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.models._regions import Backbone, Norm, best_of_levels, lay_anchors, prefix
from descend.models.faster_rcnn import FPN
from descend.models.resnet import TORCHVISION as RESNET
from descend.models.resnet import ResNetConfig
from descend.nn.detection.fpn import ConvLevels, SharedHead, SmoothedPyramid
from descend.nn.detection.heads import start_unlikely
from descend.nn.detection.towers import PlainTower, predict
from descend.ops.boxes import clip_boxes
from descend.ops.detection.coding import LIMIT, decode_offsets
from descend.ranges import Count, Depth, NonNegative, Positive, PositiveShare, Share, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename_pair


@dataclass(frozen=True)
class RetinaNetConfig:
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
    sizes: tuple[tuple[Positive, ...], ...] = (
        (32.0, 40.0, 50.0),
        (64.0, 80.0, 101.0),
        (128.0, 161.0, 203.0),
        (256.0, 322.0, 406.0),
        (512.0, 645.0, 812.0),
    )
    """√area of the anchors of each level: s, 2^⅓ s, 2^⅔ s, in whole pixels."""
    ratios: tuple[Positive, ...] = (0.5, 1.0, 2.0)
    """h / w of the anchors."""
    corner: Share = 0.5
    """Where in its cell an anchor's centre is; 0: at its corner, and in whole pixels."""
    candidates: Count = 1000
    """Of each level, before NMS."""
    tau: PositiveShare = 0.5
    """IoU above which the better of two objects of a class suppresses the other."""
    epsilon: NonNegative = 1e-5
    """Of the batch norms."""
    norm: Norm = "batch"
    """batch, or frozen: the backbone's moments are those of the weights it starts from"""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths", "ratios"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "sizes", tuple(map(tuple, self.sizes)))
        if len(self.widths) < 2 or len(self.sizes) != len(self.widths) + 1:
            raise ValueError(f"{len(self.widths)} stages make {len(self.widths) + 1} levels: give as many sizes")
        if len({len(size) for size in self.sizes}) != 1:
            raise ValueError("every level needs as many sizes of anchors: they share their head")

    def backbone(self) -> ResNetConfig:
        """The residual network."""
        return ResNetConfig(self.channels, self.stem, self.widths, self.depths, self.block)


class AnchorsFound(NamedTuple):
    """What is said of n anchors of b images."""

    logits: Tensor
    """(b, n, K)"""
    offsets: Tensor
    """(b, n, 4)"""
    anchors: Tensor
    """(n, 4) in pixels of the input."""
    level: Tensor
    """(n)"""
    size: Tensor
    """Height and width of the input."""


class RetinaNet(Pretrained):
    """images (b, channels, h, w) -> logits and offsets of all anchors"""

    Config = RetinaNetConfig

    def __init__(self, config: RetinaNetConfig):
        super().__init__()
        c = self.config = config
        self.backbone = Backbone(c.backbone(), c.epsilon, c.norm)
        self.pyramid = SmoothedPyramid(c.widths[1:], c.pyramid, ConvLevels(c.pyramid))
        k, classes = len(c.ratios) * len(c.sizes[0]), len(c.labels)
        named = start_unlikely(predict(c.pyramid, k * classes))
        self.classes = SharedHead(nn.Sequential(PlainTower(c.pyramid, c.depth), named), classes)
        self.offsets = SharedHead(nn.Sequential(PlainTower(c.pyramid, c.depth), predict(c.pyramid, 4 * k)), 4)
        self.stride = 2 ** (len(c.widths) + 1)

    def forward(self, x: Tensor) -> AnchorsFound:
        maps = self.pyramid(self.backbone.pyramid(x)[1:])
        anchors = lay_anchors(maps, x, self.config.sizes, self.config.ratios, self.config.corner)
        return AnchorsFound(self.classes(maps), self.offsets(maps), *anchors, torch.tensor(x.shape[2:]))

    def decode(self, found: AnchorsFound, least: float = 0.001, most: int = 100) -> Boxes:
        """Objects, best first, after NMS of each class."""
        height, width = found.size.tolist()
        boxes = clip_boxes(decode_offsets(found.offsets.float(), found.anchors, limit=LIMIT), width, height)
        counts, c = torch.bincount(found.level).tolist(), self.config
        return best_of_levels(boxes, found.logits.float().sigmoid(), counts, c.candidates, c.tau, least, most)


COCO = Labels(tuple(f"LABEL_{k}" for k in range(91)))
SIZES = {"retinanet-resnet-50": RetinaNetConfig(corner=0.0, epsilon=0.0, labels=COCO)}
PARAMETERS = {"retinanet-resnet-50": 34_068_119}
TINY = RetinaNetConfig(
    stem=6,
    widths=(8, 12),
    depths=(1, 1),
    block="basic",
    pyramid=8,
    depth=2,
    sizes=((12.0, 16.0), (20.0, 26.0), (32.0, 40.0)),
    labels=Labels(("a", "b", "c")),
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 48, 64, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("RetinaNet", parts={"labels": Labels})

TORCHVISION = [
    *prefix(RESNET, "backbone", "backbone.body"),
    *FPN,
    *rename_pair("pyramid.coarser.p6", "backbone.fpn.extra_blocks.p6"),
    *rename_pair("pyramid.coarser.p7", "backbone.fpn.extra_blocks.p7"),
    *(
        rule
        for ours, theirs, last in (
            ("classes", "head.classification_head", "cls_logits"),
            ("offsets", "head.regression_head", "bbox_reg"),
        )
        for rule in (
            *rename_pair(f"{ours}.head.0.convs.{{}}", f"{theirs}.conv.{{}}.0"),
            *(r for i in range(9) for r in rename_pair(f"{ours}.head.0.convs.{i}", f"{theirs}.conv.{2 * i}")),
            *rename_pair(f"{ours}.head.1", f"{theirs}.{last}"),
        )
    ),
]
"""Names of torchvision's file; the published one has older names, which are read, too."""
