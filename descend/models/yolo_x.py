"""One detector without anchors whose block, neck and head are parts: YOLOX, and what YOLOv7 and YOLOv9 changed.

    stem       each 2 × 2 pixels as 4 times the channels, then a 3×3 unit
    backbone   four stages: a 3×3 unit of stride 2 and a block; pyramid pooling before the last block
    block      csp (YOLOX), elan and e-elan (YOLOv7), gelan (YOLOv9: every pair of a chain is itself a chain)
    neck       pan: maps laid beside each other, mixed by the same kind of block; sum: added, one width
    head       decoupled: classes by one branch, box and objectness by another; coupled: one convolution for all
    box        centre ((t_x + j + ½) s, (t_y + i + ½) s), size s e^{t_w}, s e^{t_h}: the cell itself is the anchor
    score      σ(o) σ(c_k)

    YOLOX        csp, pan, decoupled; SimOTA, 1 − IoU²             YOLOv7    elan, pan, coupled; SimOTA, CIoU
    YOLOv9       gelan, pan, decoupled; task alignment, CIoU

MF names these models only; the book's frame is the same for all (24.1.5): a convolutional backbone, maps of several
scales, and for each cell a box, objectness and class scores. Assigner and box loss are parts of
`losses/detection/points.py`. Stem and CSP sizes follow Ge et al. 2021, whose centres count from the corner of a cell.

Systems: yolox-v7-v9
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.contracts import Boxes
from descend.models._yolo import COCO, name_fields
from descend.nn.convolution.residual import channels_last
from descend.nn.detection.blocks import BLOCKS, MIXERS
from descend.nn.detection.csp import PyramidPool, silu_unit
from descend.nn.detection.heads import CoupledHead, DecoupledHead, flatten_levels
from descend.nn.detection.pan import NarrowedPathAggregation, SummedPathAggregation
from descend.ops.boxes import to_corners
from descend.ops.detection.distances import make_points
from descend.ops.detection.yolo_grid import LARGEST, score_classes
from descend.ops.nms import keep_best
from descend.ranges import Depth, Share, Width
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained

STRIDES = (8, 16, 32)


@dataclass(frozen=True)
class YoloXConfig:
    """The defaults are those of YOLOX-s. A recipe takes channels and labels from its data."""

    channels: Width = 3
    widths: tuple[Width, Width, Width, Width, Width] = (32, 64, 128, 256, 512)
    """Maps of the stem and of each stage."""
    depths: tuple[Depth, Depth, Depth, Depth] = (1, 3, 3, 1)
    """Units in the block of each stage."""
    block: Literal["csp", "elan", "e-elan", "gelan"] = "csp"
    neck: Literal["pan", "sum"] = "pan"
    head: Literal["decoupled", "coupled"] = "decoupled"
    neck_depth: Depth = 1
    head_width: Width = 128
    tau: Share = 0.65
    """Of two boxes of a class with a larger IoU, the one with the lower score is removed."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.widths) != 5 or len(self.depths) != 4 or any(width % 4 for width in self.widths):
            raise ValueError(f"widths {self.widths}, depths {self.depths}: five multiples of 4, and four depths")
        if self.block not in BLOCKS:
            raise ValueError(f"block {self.block!r} is unknown; known: {', '.join(BLOCKS)}")


class FoundPoints(NamedTuple):
    """What the model says at its n points."""

    logits: Tensor
    """Of the classes (b, n, K)."""
    objectness: Tensor
    """Logits (b, n)."""
    boxes: Tensor
    """x0, y0, x1, y1 in pixels (b, n, 4)."""
    points: Tensor
    """The centres of the cells in pixels (n, 2)."""
    strides: Tensor
    """(n)"""


class YoloX(Pretrained):
    """images (b, channels, h, w), sides multiples of 32 -> `FoundPoints`"""

    Config = YoloXConfig
    stride = STRIDES[-1]

    def __init__(self, config: YoloXConfig):
        super().__init__()
        c = self.config = config
        stem, *widths = c.widths
        self.stem = silu_unit(4 * c.channels, stem, 3)
        steps = zip(c.widths[:-2], c.widths[1:-1], c.depths[:-1], strict=True)
        block, mixer = BLOCKS[c.block], MIXERS[c.block]
        stages = [nn.Sequential(silu_unit(a, b, 3, 2), block(b, b, depth)) for a, b, depth in steps]
        last = widths[-1]
        pool, mix = PyramidPool(last, last), mixer(last, last, c.depths[-1])
        self.stages = nn.ModuleList([*stages, nn.Sequential(silu_unit(widths[-2], last, 3, 2), pool, mix)])
        if c.neck == "pan":
            self.neck: nn.Module = NarrowedPathAggregation(widths[1:], lambda a, b: mixer(a, b, c.neck_depth))
        else:
            self.neck = SummedPathAggregation(widths[1:], widths[1])
        given = widths[1:] if c.neck == "pan" else widths[1:2] * 3
        head = DecoupledHead if c.head == "decoupled" else CoupledHead
        self.heads = nn.ModuleList(head(width, c.head_width, len(c.labels)) for width in given)

    def forward(self, x: Tensor) -> FoundPoints:
        maps = self.neck(self.pyramid(x))
        points, strides = make_points([(m.shape[2], m.shape[3]) for m in maps], STRIDES, x)
        found = [head(m) for head, m in zip(self.heads, maps, strict=True)]
        classes, boxes, objectness = (flatten_levels(level) for level in zip(*found, strict=True))
        return FoundPoints(classes, objectness.squeeze(2), place_boxes(boxes, points, strides), points, strides)

    def pyramid(self, x: Tensor) -> list[Tensor]:
        """The backbone's maps of strides 8, 16 and 32."""
        x, maps = self.stem(channels_last(F.pixel_unshuffle(x, 2))), []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps[1:]

    def decode(self, found: FoundPoints, least: float = 0.001, most: int = 100) -> Boxes:
        """The best class of each point, without duplicates."""
        scores, classes = score_classes(found.objectness.sigmoid(), found.logits.sigmoid())
        return keep_best(found.boxes, scores, classes, self.config.tau, least, most)


def place_boxes(t: Tensor, points: Tensor, strides: Tensor) -> Tensor:
    """t_x, t_y, t_w, t_h (b, n, 4) -> x0, y0, x1, y1 (b, n, 4) in pixels."""
    s = strides[:, None]
    return to_corners(torch.cat([t[..., :2] * s + points, t[..., 2:].clamp_max(LARGEST).exp() * s], dim=-1))


def scale(depth: float, width: float) -> YoloXConfig:
    """A published size by its factors on depths and widths."""
    a, b, c, d, e = (round(full * width) for full in (64, 128, 256, 512, 1024))
    short, long = (max(round(n * depth), 1) for n in (3, 9))
    return YoloXConfig(
        widths=(a, b, c, d, e),
        depths=(short, long, long, short),
        neck_depth=short,
        head_width=round(256 * width),
        labels=COCO,
    )


SIZES = {
    "yolo-x-tiny": scale(1 / 3, 0.375),
    "yolo-x-s": scale(1 / 3, 0.5),
    "yolo-x-m": scale(2 / 3, 0.75),
    "yolo-x-l": scale(1, 1),
    "yolo-x-x": scale(4 / 3, 1.25),
}
PARAMETERS = {
    "yolo-x-tiny": 5_055_855,
    "yolo-x-s": 8_968_255,
    "yolo-x-m": 25_326_495,
    "yolo-x-l": 54_208_895,
    "yolo-x-x": 99_071_455,
}
TINY = YoloXConfig(widths=(4, 8, 8, 8, 12), depths=(1, 1, 1, 1), head_width=8, labels=Labels(("a", "b", "c")))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(0))


LAYOUT = name_fields(YoloXConfig)
