"""SSD: one pass, and every cell of several maps says what is in its default boxes.

    backbone    VGG to conv4_3 (stride 8, its vectors scaled to a learned length), conv5, fc6 dilated, fc7 (stride 16)
    extras      1×1 down, 3×3 with stride 2 (or without padding), again and again: 38, 19, 10, 5, 3, 1 cells a side
    of a box    logits of K + 1 classes, 0 is background, and 4 offsets: one 3×3 convolution each a map
    default boxes of map k, as shares of the image: s_k and √(s_k s_{k+1}) as squares, and for each ratio a
                s_k √a × s_k / √a and the same upright; around ((j + ½) step, (i + ½) step)

300 pixels: (38² + 3² + 1²) · 4 + (19² + 10² + 5²) · 6 = 8,732 boxes. The books name SSD; the paper's sizes are those of
the public weights: s = 0.07, 0.15, 0.33, .. 1.05. Trained by `losses/detection/multibox.py`.
`TORCHVISION` has the names of ssd300_vgg16. For training from scratch `norm` "batch" puts a batch norm behind every
convolution of the trunk (the paper's VGG was pretrained, and has none).

Systems: ssd
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import torch
import tyro
from torch import Tensor, nn
from torch.nn import functional as F

from descend.contracts import Boxes
from descend.models._regions import best_of_classes
from descend.nn.detection.fpn import LevelHeads
from descend.ops.boxes import clip_boxes
from descend.ops.detection.anchors import place_anchors
from descend.ops.detection.coding import RCNN, decode_offsets
from descend.ranges import Count, Depth, Few, Positive, PositiveShare, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, rename_pair

NORMS = ("none", "batch")


Ratios = tyro.conf.Suppress[tuple[tuple[Positive, ...], ...]]
"""Lists of lists are no flags."""


@dataclass(frozen=True)
class SSDConfig:
    """The defaults are SSD300 with VGG-16. A recipe takes channels and labels from its data."""

    channels: Width = 3
    convs: tuple[Depth, ...] = (2, 2, 3, 3, 3)
    """Convolutions of each block; the last two give the first two maps."""
    widths: tuple[Width, ...] = (64, 128, 256, 512, 512)
    hidden: Width = 1024
    """Maps of fc6 and fc7."""
    dilation: Width = 6
    """Of fc6."""
    squeeze: tuple[Width, ...] = (256, 128, 128, 128)
    """Maps inside the extra layers."""
    extras: tuple[Width, ...] = (512, 256, 256, 256)
    """Maps that they give."""
    strides: tuple[Width, ...] = (2, 2, 1, 1)
    """Of the extra layers; those of stride 1 have no padding and lose a border."""
    scales: tuple[Positive, ...] = (0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05)
    """Sides of the default boxes of each map as shares of the image, and one more."""
    ratios: tyro.conf.Suppress[tuple[tuple[Positive, ...], ...]] = (
        (2.0,),
        (2.0, 3.0),
        (2.0, 3.0),
        (2.0, 3.0),
        (2.0,),
        (2.0,),
    )
    """Of the boxes of each map that are no squares."""
    steps: tuple[Few, ...] = (8, 16, 32, 64, 100, 300)
    """Pixels from box to box of each map; none: the image divided by the cells."""
    norm: str = "none"
    """none or batch, behind the convolutions of the trunk"""
    candidates: Count = 400
    """Of each class, before NMS."""
    tau: PositiveShare = 0.45
    """IoU above which the better of two objects of a class suppresses the other."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("convs", "widths", "squeeze", "extras", "strides", "scales", "steps"):  # lists in config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "ratios", tuple(map(tuple, self.ratios)))
        if len(self.convs) != len(self.widths) or len(self.convs) < 2:
            raise ValueError(f"{len(self.convs)} blocks, but {len(self.widths)} widths; give as many, at least 2")
        if not len(self.squeeze) == len(self.extras) == len(self.strides):
            raise ValueError("squeeze, extras and strides: give one of each for an extra layer")
        maps = 2 + len(self.extras)
        if len(self.scales) != maps + 1 or len(self.ratios) != maps or len(self.steps) not in (0, maps):
            raise ValueError(f"{maps} maps need {maps + 1} scales, {maps} lists of ratios, and as many steps or none")
        if self.norm not in NORMS:
            raise ValueError(f"norm {self.norm!r} is unknown; known: {', '.join(NORMS)}")

    def boxes(self, level: int) -> int:
        """Default boxes of a cell."""
        return 2 + 2 * len(self.ratios[level])


class DefaultsFound(NamedTuple):
    """What is said of n default boxes of b images."""

    logits: Tensor
    """(b, n, K + 1); class 0 is background."""
    offsets: Tensor
    """(b, n, 4)"""
    anchors: Tensor
    """(n, 4) in pixels of the input."""
    size: Tensor
    """Height and width of the input."""


class SSD(Pretrained):
    """images (b, channels, h, w) -> logits and offsets of all default boxes"""

    Config = SSDConfig

    def __init__(self, config: SSDConfig):
        super().__init__()
        c = self.config = config
        self.layers = nn.Sequential(*self.block(c.channels, 0))
        for i in range(1, len(c.convs) - 1):
            pool = nn.MaxPool2d(2, ceil_mode=i == len(c.convs) - 2)  # 75 cells become 38
            self.layers.extend([pool, *self.block(c.widths[i - 1], i)])
        self.length = nn.Parameter(torch.full((c.widths[-2],), 20.0))
        self.middle = nn.Sequential(
            nn.MaxPool2d(2),
            *self.block(c.widths[-2], len(c.convs) - 1),
            nn.MaxPool2d(3, 1, 1),
            *self.unit(nn.Conv2d(c.widths[-1], c.hidden, 3, padding=c.dilation, dilation=c.dilation)),
            *self.unit(nn.Conv2d(c.hidden, c.hidden, 1)),
        )
        outputs = (c.hidden, *c.extras)
        self.extras = nn.ModuleList(
            nn.Sequential(
                *self.unit(nn.Conv2d(before, inner, 1)),
                *self.unit(nn.Conv2d(inner, after, 3, stride, padding=int(stride > 1))),
            )
            for (before, after), inner, stride in zip(pairwise(outputs), c.squeeze, c.strides, strict=True)
        )
        widths, k = (c.widths[-2], *outputs), len(c.labels) + 1
        self.classes = LevelHeads([nn.Conv2d(w, k * c.boxes(i), 3, padding=1) for i, w in enumerate(widths)], k)
        self.offsets = LevelHeads([nn.Conv2d(w, 4 * c.boxes(i), 3, padding=1) for i, w in enumerate(widths)], 4)
        self.stride = 2 ** len(c.convs)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]

    def unit(self, conv: nn.Conv2d) -> list[nn.Module]:
        """A convolution and what follows it."""
        norm = [nn.BatchNorm2d(conv.out_channels)] if self.config.norm == "batch" else []
        return [conv, *norm, nn.ReLU(inplace=True)]

    def block(self, inputs: int, i: int) -> list[nn.Module]:
        """The 3×3 convolutions of block i."""
        width = self.config.widths[i]
        sizes = pairwise((inputs, *(width,) * self.config.convs[i]))
        return [layer for a, b in sizes for layer in self.unit(nn.Conv2d(a, b, 3, padding=1))]

    def forward(self, x: Tensor) -> DefaultsFound:
        maps = self.pyramid(x)
        size = torch.tensor(x.shape[2:])
        return DefaultsFound(self.classes(maps), self.offsets(maps), self.anchors(maps, x), size)

    def pyramid(self, x: Tensor) -> list[Tensor]:
        """The maps that are looked at, fine to coarse."""
        y = self.layers(x)
        maps = [self.length[:, None, None] * F.normalize(y), self.middle(y)]
        for layer in self.extras:
            maps.append(layer(maps[-1]))
        return maps

    def anchors(self, maps: list[Tensor], x: Tensor) -> Tensor:
        """The default boxes of all maps (n, 4), in pixels of the input."""
        height, width = x.shape[2:]
        sides, found = x.new_tensor([width, height]), []
        for level, m in enumerate(maps):
            rows, columns = m.shape[2:]
            step = self.config.steps[level] if self.config.steps else 0
            y = (torch.arange(rows, device=x.device) + 0.5) * (step or height / rows)
            z = (torch.arange(columns, device=x.device) + 0.5) * (step or width / columns)
            points = torch.stack([z.expand(rows, -1), y[:, None].expand(-1, columns)], dim=-1).view(-1, 2)
            found.append(place_anchors(points, self.shapes(level).to(sides) * sides))
        return torch.cat(found)

    def shapes(self, level: int) -> Tensor:
        """w, h of a cell's boxes as shares of the image (k, 2), none larger than it."""
        s, after = self.config.scales[level : level + 2]
        found = [(s, s), ((s * after) ** 0.5,) * 2]
        for a in self.config.ratios[level]:
            found += [(s * a**0.5, s / a**0.5), (s / a**0.5, s * a**0.5)]
        return torch.tensor(found).clamp_max(1.0)

    def decode(self, found: DefaultsFound, least: float = 0.001, most: int = 100) -> Boxes:
        """Objects, best first, after NMS of each class."""
        height, width = found.size.tolist()
        boxes = clip_boxes(decode_offsets(found.offsets.float(), found.anchors, RCNN), width, height)
        scores = found.logits.float().softmax(dim=-1)[..., 1:]
        return best_of_classes(boxes, scores, self.config.candidates, self.config.tau, least, most)


COCO = Labels(tuple(f"LABEL_{k}" for k in range(1, 91)))
SIZES = {"ssd300-vgg-16": SSDConfig(labels=COCO)}
PARAMETERS = {"ssd300-vgg-16": 35_641_826}
TINY = SSDConfig(
    convs=(1, 1, 2, 1),
    widths=(4, 6, 8, 8),
    hidden=10,
    dilation=2,
    squeeze=(6, 6),
    extras=(8, 8),
    strides=(2, 1),
    scales=(0.1, 0.25, 0.5, 0.75, 1.0),
    ratios=((2.0,), (2.0, 3.0), (2.0,), (2.0,)),
    steps=(),
    labels=Labels(("a", "b", "c")),
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 48, 64, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("SSD", parts={"labels": Labels})

TORCHVISION = [
    rename("length", "backbone.scale_weight"),
    *rename_pair("layers.{}", "backbone.features.{}"),
    *rename_pair("middle.8", "backbone.extra.0.7.1"),
    *rename_pair("middle.10", "backbone.extra.0.7.3"),
    *rename_pair("middle.{}", "backbone.extra.0.{}"),
    *(rule for i in range(5) for rule in rename_pair(f"extras.{i}.{{}}", f"backbone.extra.{i + 1}.{{}}")),
    *rename_pair("classes.heads.{}", "head.classification_head.module_list.{}"),
    *rename_pair("offsets.heads.{}", "head.regression_head.module_list.{}"),
]
"""Names of torchvision's file ssd300_vgg16 (`descend.weights.flat`)."""
