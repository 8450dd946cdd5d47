"""Heads of one-stage detectors: what is read off at every cell of a map.

    coupled       z = W x + b        B (5 + K) numbers of a cell with B anchors: t_x, t_y, t_w, t_h, o, c_1 .. c_K
    decoupled     the class by one branch of convolutions, the box by another: no weights are shared after the stem
    distances     the box branch gives 4 n logits: the distances to the four sides as distributions over n bins

Classes begin unlikely: a bias of −ln((1 − π)/π) makes every probability π = 0.01, so that the many cells without an
object do not drown the few with one in the first steps (Lin et al. 2017).

Systems: yolo-head-and-grid, yolox-v7-v9, yolo-v8
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.nn.detection.csp import Unit, silu_unit

PRIOR = 0.01
"""π: the probability of a class, or of an object, before anything is learned."""


def start_unlikely(layer: nn.Conv2d, channels: slice = slice(None), prior: float = PRIOR) -> nn.Conv2d:
    """The layer with a bias that makes these outputs' sigmoid `prior`."""
    assert layer.bias is not None
    with torch.no_grad():
        layer.bias[channels] = -math.log((1 - prior) / prior)
    return layer


def flatten_levels(maps: Sequence[Tensor]) -> Tensor:
    """Maps (b, c, h, w) of several levels -> (b, Σ h w, c), level by level and row by row."""
    return torch.cat([x.flatten(2) for x in maps], dim=2).transpose(1, 2)


class GridHead(nn.Conv2d):
    """A 1×1 convolution to B (5 + K) channels: t_x, t_y, t_w, t_h, o, c_1 .. c_K of each of a cell's B anchors."""

    def __init__(self, inputs: int, anchors: int, classes: int):
        super().__init__(inputs, anchors * (5 + classes), 1)
        nn.init.normal_(self.weight, std=0.01)
        start_unlikely(self, slice(4, None, 5 + classes))


class Branch(nn.Module):
    """Two 3×3 units and a 1×1 convolution."""

    def __init__(self, inputs: int, hidden: int, outputs: int, unit: Unit = silu_unit):
        super().__init__()
        self.first, self.second = unit(inputs, hidden, 3, 1), unit(hidden, hidden, 3, 1)
        self.last = nn.Conv2d(hidden, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.second(self.first(x)))


class DistanceHead(nn.Module):
    """For every level a class branch and a box branch: maps -> logits (b, n, K), distributions (b, n, 4, bins)."""

    def __init__(self, widths: Sequence[int], classes: int, bins: int, hidden: tuple[int, int]):
        super().__init__()
        by_class, by_box = hidden
        self.bins = bins
        self.classes = nn.ModuleList(Branch(width, by_class, classes) for width in widths)
        self.boxes = nn.ModuleList(Branch(width, by_box, 4 * bins) for width in widths)
        for branch in self.classes:
            assert isinstance(branch, Branch)
            start_unlikely(branch.last)

    def forward(self, maps: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        logits = [branch(x) for branch, x in zip(self.classes, maps, strict=True)]
        sides = [branch(x) for branch, x in zip(self.boxes, maps, strict=True)]
        return flatten_levels(logits), flatten_levels(sides).unflatten(2, (4, self.bins))


class Decoupled(NamedTuple):
    """Of a level: class logits (b, K, h, w), box numbers (b, 4, h, w), objectness logits (b, 1, h, w)."""

    classes: Tensor
    boxes: Tensor
    objectness: Tensor


class CoupledHead(nn.Module):
    """One 3×3 unit and one 1×1 convolution for box, objectness and classes of a level."""

    def __init__(self, inputs: int, width: int, classes: int, unit: Unit = silu_unit):
        super().__init__()
        self.stem = unit(inputs, width, 3, 1)
        self.score = GridHead(width, 1, classes)

    def forward(self, x: Tensor) -> Decoupled:
        y: Tensor = self.score(self.stem(x))
        return Decoupled(y[:, 5:], y[:, :4], y[:, 4:5])


class DecoupledHead(nn.Module):
    """YOLOX's head of one level: a 1×1 stem, then a branch for the class and one for box and objectness."""

    def __init__(self, inputs: int, width: int, classes: int, unit: Unit = silu_unit):
        super().__init__()
        self.stem = unit(inputs, width, 1, 1)
        self.class_branch = nn.Sequential(unit(width, width, 3, 1), unit(width, width, 3, 1))
        self.box_branch = nn.Sequential(unit(width, width, 3, 1), unit(width, width, 3, 1))
        self.classes = start_unlikely(nn.Conv2d(width, classes, 1))
        self.boxes = nn.Conv2d(width, 4, 1)
        self.objectness = start_unlikely(nn.Conv2d(width, 1, 1))

    def forward(self, x: Tensor) -> Decoupled:
        x = self.stem(x)
        by_class, by_box = self.class_branch(x), self.box_branch(x)
        return Decoupled(self.classes(by_class), self.boxes(by_box), self.objectness(by_box))
