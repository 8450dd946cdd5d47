"""Faster R-CNN: propose regions, then look at each of them; both stages on one backbone.

    C2..C5 = backbone(x)        P2..P6 = pyramid(C), of strides 4, 8, 16, 32, 64        once for an image
    o, t = RPN(P)               proposals = NMS of the anchors moved by t, by o; one size a level, 3 ratios
    z, t' = head(RoIAlign(P, proposals))        objects = NMS of the regions moved by t', class by class

The loss needs regions that are chosen with the truth in hand, of which the model knows nothing: `forward` gives the
proposals and `refine(boxes, owner)`, the second stage as a function. Trained jointly (`losses/detection/regions.py`).
Class 0 of the second stage is background; `labels` does not count it.

`SIZES` is torchvision's fasterrcnn_resnet50_fpn with 91 classes, background included, and `TORCHVISION` has its names:
41,755,286 parameters there, where batch norms are frozen (buffers), and 41,808,406 with their 53,120 scales and shifts.
Its anchors are at the corner of a cell and rounded to whole pixels (`corner`), RoIAlign is the first version (`shift`
0), and its published weights were trained without ε in the batch norms. The default is the books': anchors at
(j + ½) s, and RoIAlign with shift ½.

Systems: faster-r-cnn, region-proposal-network
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.models._regions import Backbone, Norm, decode_regions, lay_anchors, prefix
from descend.models.resnet import TORCHVISION as RESNET
from descend.models.resnet import ResNetConfig
from descend.nn.detection.fpn import SmoothedPyramid, SubsampledLevel
from descend.nn.detection.region_proposals import ProposalRule, RegionProposalNetwork, propose
from descend.nn.detection.roi import AlignedRegions, Refined, RegionHead
from descend.ranges import Count, Depth, NonNegative, Positive, PositiveShare, Share, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename_pair


@dataclass(frozen=True)
class FasterRCNNConfig:
    """The defaults are those of ResNet-50 with a pyramid. A recipe takes channels and labels from its data."""

    channels: Width = 3
    stem: Width = 64
    widths: tuple[Width, ...] = (256, 512, 1024, 2048)
    """Maps of the backbone's stages; the first has stride 4, each other one twice the one before."""
    depths: tuple[Depth, ...] = (3, 4, 6, 3)
    block: str = "bottleneck"
    """basic or bottleneck"""
    pyramid: Width = 256
    """Maps of every level."""
    hidden: Width = 1024
    """Units of the second stage."""
    grid: Width = 7
    """Side of a region's grid."""
    sizes: tuple[Positive, ...] = (32.0, 64.0, 128.0, 256.0, 512.0)
    """√area of the anchors of each level."""
    ratios: tuple[Positive, ...] = (0.5, 1.0, 2.0)
    """h / w of the anchors."""
    canonical: Positive = 224.0
    """Side of a region that is read from level 4."""
    corner: Share = 0.5
    """Where in its cell an anchor's centre is; 0: at its corner, and in whole pixels."""
    shift: Share = 0.5
    """Of RoIAlign."""
    candidates: Count = 1000
    """Of each level, before NMS."""
    proposals: Count = 1000
    """Of an image, after it."""
    proposal_tau: PositiveShare = 0.7
    """IoU above which the better of two proposals suppresses the other."""
    tau: PositiveShare = 0.5
    """The same of objects of a class."""
    epsilon: NonNegative = 1e-5
    """Of the batch norms."""
    norm: Norm = "batch"
    """batch, or frozen: the backbone's moments are those of the weights it starts from"""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths", "sizes", "ratios"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.sizes) != len(self.widths) + 1:
            raise ValueError(f"{len(self.widths)} stages make {len(self.widths) + 1} levels: give as many sizes")

    def backbone(self) -> ResNetConfig:
        """The residual network."""
        return ResNetConfig(self.channels, self.stem, self.widths, self.depths, self.block)


class Found(NamedTuple):
    """What both stages need of b images with n anchors."""

    objectness: Tensor
    """Logits (b, n)."""
    offsets: Tensor
    """(b, n, 4)"""
    anchors: Tensor
    """(n, 4) in pixels of the input."""
    proposals: Tensor
    """(b, p, 4), best first, padded with boxes without area."""
    real: Tensor
    """(b, p) whether there is a proposal."""
    size: Tensor
    """Height and width of the input."""
    refine: Callable[[Tensor, Tensor], Refined]
    """Boxes (r, 4) of images owner (r) -> the second stage's logits and offsets."""


class FasterRCNN(Pretrained):
    """images (b, channels, h, w) -> proposals, and what says more of them"""

    Config = FasterRCNNConfig

    def __init__(self, config: FasterRCNNConfig):
        super().__init__()
        c = self.config = config
        self.backbone = Backbone(c.backbone(), c.epsilon, c.norm)
        self.pyramid = SmoothedPyramid(c.widths, c.pyramid, SubsampledLevel())
        self.rpn = RegionProposalNetwork(c.pyramid, len(c.ratios))
        self.regions = AlignedRegions(c.grid, shift=c.shift, canonical=c.canonical)
        self.head = RegionHead(c.pyramid, c.grid, c.hidden, len(c.labels))
        self.stride = 2 ** (len(c.widths) + 1)
        self.rule = ProposalRule(c.candidates, c.proposals, c.proposal_tau)

    def forward(self, x: Tensor) -> Found:
        maps = self.pyramid(self.backbone.pyramid(x))
        objectness, offsets = self.rpn(maps)
        anchors, level = lay_anchors(maps, x, [(s,) for s in self.config.sizes], self.config.ratios, self.config.corner)
        size = (x.shape[2], x.shape[3])
        regions = propose(objectness, offsets, anchors, level, size, self.rule)
        return Found(
            objectness,
            offsets,
            anchors,
            regions.boxes,
            regions.real,
            torch.tensor(size),
            lambda boxes, owner: self.head(self.regions(maps[:-1], boxes, owner)),
        )

    def decode(self, found: Found, least: float = 0.001, most: int = 100) -> Boxes:
        """Objects, best first, after NMS of each class."""
        owner, place = found.real.nonzero(as_tuple=True)
        boxes = found.proposals[owner, place]
        size = (int(found.size[0]), int(found.size[1]))
        refined = found.refine(boxes, owner)
        return decode_regions(refined, boxes, owner, len(found.real), size, self.config.tau, least, most)


COCO = Labels(tuple(f"LABEL_{k}" for k in range(1, 91)))
SIZES = {
    "faster-rcnn-resnet-50": FasterRCNNConfig(corner=0.0, shift=0.0, epsilon=0.0, labels=COCO),
}
PARAMETERS = {"faster-rcnn-resnet-50": 41_808_406}
TINY = FasterRCNNConfig(
    stem=6,
    widths=(8, 12),
    depths=(1, 1),
    block="basic",
    pyramid=8,
    hidden=16,
    grid=3,
    sizes=(8.0, 16.0, 32.0),
    canonical=48.0,
    candidates=50,
    proposals=20,
    labels=Labels(("a", "b", "c")),
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 32, 48, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("FasterRCNN", parts={"labels": Labels})

FPN = [
    *rename_pair("pyramid.pyramid.lateral.{}", "backbone.fpn.inner_blocks.{}.0"),
    *rename_pair("pyramid.smooth.{}", "backbone.fpn.layer_blocks.{}.0"),
    *rename_pair("pyramid.pyramid.lateral.{}", "backbone.fpn.inner_blocks.{}"),
    *rename_pair("pyramid.smooth.{}", "backbone.fpn.layer_blocks.{}"),
]
"""Written with the names of today; the published files have the older ones, without the .0."""

TORCHVISION = [
    *prefix(RESNET, "backbone", "backbone.body"),
    *FPN,
    *rename_pair("rpn.conv", "rpn.head.conv.0.0"),
    *rename_pair("rpn.conv", "rpn.head.conv"),
    *rename_pair("rpn.objectness", "rpn.head.cls_logits"),
    *rename_pair("rpn.offsets", "rpn.head.bbox_pred"),
    *rename_pair("head.f6", "roi_heads.box_head.fc6"),
    *rename_pair("head.f7", "roi_heads.box_head.fc7"),
    *rename_pair("head.logits", "roi_heads.box_predictor.cls_score"),
    *rename_pair("head.offsets", "roi_heads.box_predictor.bbox_pred"),
]
"""Names of torchvision's file (`descend.weights.flat`)."""
