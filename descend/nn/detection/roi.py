"""The second stage of region detectors: every region's grid through a small network that names and refines it.

    f = ReLU(W7 ReLU(W6 grid))                    grid (d, k, k), flattened
    class = softmax(W_c f),  K + 1 classes, 0 is background        offsets = W_b f, 4 numbers for each class

On a pyramid a region is cut from the level whose cells suit its size,
    level = ⌊4 + log2(√(w h) / 224)⌋, kept within 2 .. 5        a region of 224 pixels: level 4, of stride 16

Systems: fast-r-cnn, faster-r-cnn
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.ops.boxes import area
from descend.ops.detection.roi import roi_align_levels, roi_pool

CANONICAL = 224.0
"""Side of a region that level 4 reads."""


class Refined(NamedTuple):
    """What the second stage says of r regions."""

    logits: Tensor
    """(r, K + 1); class 0 is background."""
    offsets: Tensor
    """(r, K + 1, 4)"""


class RegionHead(nn.Module):
    """Grids (r, d, k, k) -> logits (r, K + 1), offsets (r, K + 1, 4)"""

    def __init__(self, width: int, grid: int, hidden: int, classes: int):
        super().__init__()
        self.f6 = nn.Linear(width * grid**2, hidden)
        self.f7 = nn.Linear(hidden, hidden)
        self.logits = nn.Linear(hidden, classes + 1)
        self.offsets = nn.Linear(hidden, 4 * (classes + 1))
        nn.init.normal_(self.logits.weight, std=0.01)
        nn.init.normal_(self.offsets.weight, std=0.001)
        nn.init.zeros_(self.logits.bias)
        nn.init.zeros_(self.offsets.bias)

    def forward(self, grids: Tensor) -> Refined:
        f = F.relu(self.f7(F.relu(self.f6(grids.flatten(1)))))
        return Refined(self.logits(f), self.offsets(f).view(len(f), -1, 4))


class PooledRegions(nn.Module):
    """RoI pooling of one map: maps (b, d, h, w) and boxes (r, 4) of images owner (r) -> grids (r, d, k, k)"""

    def __init__(self, grid: int, stride: int):
        super().__init__()
        self.grid, self.stride = grid, stride

    def forward(self, maps: Tensor, boxes: Tensor, owner: Tensor) -> Tensor:
        return roi_pool(maps, boxes, owner, self.grid, 1 / self.stride)


class AlignedRegions(nn.Module):
    """RoIAlign of a pyramid: maps of the levels (b, d, h_i, w_i) and boxes (r, 4) of images owner (r) -> grids
    (r, d, k, k), each from the level that suits its size. `finest` is the number of the first level, of stride
    2^finest."""

    def __init__(self, grid: int, finest: int = 2, samples: int = 2, shift: float = 0.5, canonical: float = CANONICAL):
        super().__init__()
        self.grid, self.finest, self.samples, self.shift, self.canonical = grid, finest, samples, shift, canonical

    def forward(self, maps: Sequence[Tensor], boxes: Tensor, owner: Tensor) -> Tensor:
        level = find_level(boxes, self.finest, self.finest + len(maps) - 1, self.canonical) - self.finest
        scales = [2.0 ** -(self.finest + i) for i in range(len(maps))]
        least = 0.0 if self.shift else 1.0
        return roi_align_levels(maps, boxes, owner, level, self.grid, scales, self.samples, self.shift, least)


def find_level(boxes: Tensor, finest: int, coarsest: int, canonical: float = CANONICAL) -> Tensor:
    """The number of the level that each box (r, 4) is read from (r)."""
    level = torch.floor(4 + torch.log2(area(boxes).sqrt() / canonical + 1e-6))
    return level.clamp(finest, coarsest).long()
