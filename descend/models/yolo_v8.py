"""YOLOv8: a detector without anchors. Every cell says which class is there and how far the four sides are.

    backbone     five halvings; a chain of residual pairs after each but the first (`nn/detection/csp.py`), and a pool
    neck         PAN over the strides 8, 16, 32: maps are laid beside each other and mixed by chains without shortcuts
    head         a branch of convolutions for the K classes, one for the distances: 4 × 16 logits
    box          x − l s, y − t s, x + r s, y + b s,  l = Σ_i i softmax(z)_i: see `ops/detection/distances.py`
    score        σ(z_k) of the best class; there is no objectness

    n, s, m, l   depths 3 d, 6 d, 6 d, 3 d and widths 64 w .. 1024 w, at most `most`:
                 (d, w, most) = (⅓, ¼, 1024), (⅓, ½, 1024), (⅔, ¾, 768), (1, 1, 512)

MF only uses the model in its tables (MF-C.38); there "fixed anchors" is wrong, and so are 2.7 M parameters of nano: it
has 3,157,200. 16 of these are the values of the bins, 0 .. 15, which are counted as a convolution and do not learn.
Duplicates of an object are removed by suppression above an IoU of `tau`.

Systems: yolo-v8
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.models._yolo import COCO, name_fields
from descend.nn.convolution.residual import channels_last
from descend.nn.detection.csp import PyramidPool, plain_chain, residual_chain, silu_unit
from descend.nn.detection.heads import DistanceHead
from descend.nn.detection.pan import PathAggregation
from descend.ops.detection.distances import distances_to_boxes, expected_distance, make_points
from descend.ops.nms import keep_best
from descend.ranges import Depth, Share, Width
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained

STRIDES = (8, 16, 32)


@dataclass(frozen=True)
class YoloV8Config:
    """The defaults are those of nano. A recipe takes channels and labels from its data."""

    channels: Width = 3
    widths: tuple[Width, Width, Width, Width, Width] = (16, 32, 64, 128, 256)
    """Maps after each halving."""
    depths: tuple[Depth, Depth, Depth, Depth] = (1, 2, 2, 1)
    """Residual pairs after each halving but the first."""
    neck: Depth = 1
    """Pairs in each block of the neck."""
    bins: Width = 16
    """How many distances, in strides, a side is distributed over: 0 .. bins − 1."""
    tau: Share = 0.65
    """Of two boxes of a class with a larger IoU, the one with the lower score is removed."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.widths) != 5 or len(self.depths) != 4 or any(width % 2 for width in self.widths):
            raise ValueError(f"widths {self.widths}, depths {self.depths}: five even widths and four depths are needed")
        if self.bins < 2:
            raise ValueError(f"bins {self.bins}: a distance needs at least 2")

    @property
    def branches(self) -> tuple[int, int]:
        """Maps in the class branch and in the box branch of the head."""
        finest = self.widths[2]
        return max(finest, min(len(self.labels), 100)), max(16, finest // 4, 4 * self.bins)


class FoundDistances(NamedTuple):
    """What the model says at its n points."""

    logits: Tensor
    """Of the classes (b, n, K)."""
    sides: Tensor
    """Logits of the distances l, t, r, b (b, n, 4, bins)."""
    boxes: Tensor
    """x0, y0, x1, y1 in pixels (b, n, 4)."""
    points: Tensor
    """Where the points lie, in pixels (n, 2)."""
    strides: Tensor
    """(n)"""


class YoloV8(Pretrained):
    """images (b, channels, h, w), sides multiples of 32 -> `FoundDistances`"""

    Config = YoloV8Config
    stride = STRIDES[-1]

    def __init__(self, config: YoloV8Config):
        super().__init__()
        c = self.config = config
        self.stem = silu_unit(c.channels, c.widths[0], 3, 2)
        steps = zip(c.widths[:-1], c.widths[1:], c.depths, strict=True)
        self.stages = nn.ModuleList(
            nn.Sequential(silu_unit(a, b, 3, 2), residual_chain(b, b, depth)) for a, b, depth in steps
        )
        self.pool = PyramidPool(c.widths[-1], c.widths[-1])
        self.neck = PathAggregation(c.widths[2:], lambda inputs, outputs: plain_chain(inputs, outputs, c.neck))
        self.head = DistanceHead(c.widths[2:], len(c.labels), c.bins, c.branches)
        self.bins = nn.Parameter(torch.arange(float(c.bins)), requires_grad=False)

    def forward(self, x: Tensor) -> FoundDistances:
        maps = self.neck(self.pyramid(x))
        points, strides = make_points([(m.shape[2], m.shape[3]) for m in maps], STRIDES, x)
        logits, sides = self.head(maps)
        boxes = distances_to_boxes(expected_distance(sides, self.bins), points, strides)
        return FoundDistances(logits, sides, boxes, points, strides)

    def pyramid(self, x: Tensor) -> list[Tensor]:
        """The backbone's maps of strides 8, 16 and 32."""
        x, maps = self.stem(channels_last(x)), []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return [*maps[1:-1], self.pool(maps[-1])]

    def decode(self, found: FoundDistances, least: float = 0.001, most: int = 100) -> Boxes:
        """The best class of each point, without duplicates."""
        scores, classes = found.logits.sigmoid().max(dim=-1)
        return keep_best(found.boxes, scores, classes, self.config.tau, least, most)


def scale(depth: float, width: float, most: int, labels: Labels) -> YoloV8Config:
    """A published size by its factors on depths and widths; widths are rounded up to multiples of 8."""
    full = (64, 128, 256, 512, 1024)
    a, b, c, d, e = (8 * -(-round(min(full_width, most) * width) // 8) for full_width in full)
    short, long = (max(round(n * depth), 1) for n in (3, 6))
    return YoloV8Config(widths=(a, b, c, d, e), depths=(short, long, long, short), neck=short, labels=labels)


SIZES = {
    "yolo-v8-n": scale(1 / 3, 0.25, 1024, COCO),
    "yolo-v8-s": scale(1 / 3, 0.5, 1024, COCO),
    "yolo-v8-m": scale(2 / 3, 0.75, 768, COCO),
    "yolo-v8-l": scale(1, 1, 512, COCO),
}
PARAMETERS = {
    "yolo-v8-n": 3_157_200,
    "yolo-v8-s": 11_166_560,
    "yolo-v8-m": 25_902_640,
    "yolo-v8-l": 43_691_520,
}
TINY = YoloV8Config(widths=(4, 6, 8, 8, 8), depths=(1, 1, 1, 1), neck=1, bins=4, labels=Labels(("a", "b", "c")))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(0))


LAYOUT = name_fields(YoloV8Config)
