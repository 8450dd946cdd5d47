"""Feature pyramids: maps of every stage, each with the meaning of the coarse ones and the places of the fine ones.

    L_i = conv1×1(C_i)                        lateral: all levels get the same number of channels
    M_n = L_n                                 the coarsest stage
    M_i = up(M_{i+1}) + L_i,  i = n−1 ..      up: to the size of L_i, nearest or bilinear
    M_{n+1} = every second pixel of M_n       the text: M6 (4×4) of M5 (7×7)

The text (MF 22.3) stops there: `FeaturePyramid`. The original adds P_i = conv3×3(M_i) to every level
(`SmoothedPyramid`), which takes away the steps that upsampling leaves. RetinaNet's coarser levels are convolutions:
P6 = conv3×3/2(P5), P7 = conv3×3/2(ReLU(P6)) (`ConvLevels`).

Heads on the levels: one for each (the text: "separate heads", `LevelHeads`), or one for all, as the original and
RetinaNet have it (`SharedHead`). Predictions are laid end to end, Σ_i H_i W_i k of them, a cell's k side by side,
in the order of `ops/detection/anchors.py`.

Systems: feature-pyramid-network
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Resize = Callable[[Tensor, Tensor], Tensor]
"""(coarse maps, maps of the size that is wanted) -> the coarse maps in that size"""


def up_nearest(coarse: Tensor, fine: Tensor) -> Tensor:
    """Each pixel becomes a block of equal pixels."""
    return F.interpolate(coarse, size=fine.shape[-2:], mode="nearest")


def up_bilinear(coarse: Tensor, fine: Tensor) -> Tensor:
    """Linear between the centres of the pixels."""
    return F.interpolate(coarse, size=fine.shape[-2:], mode="bilinear", align_corners=False)


class FeaturePyramid(nn.Module):
    """Maps of the stages, fine to coarse (b, widths[i], h_i, w_i) -> M_i (b, width, h_i, w_i), one coarser."""

    def __init__(self, widths: Sequence[int], width: int, up: Resize = up_nearest):
        super().__init__()
        self.lateral = nn.ModuleList(nn.Conv2d(inputs, width, 1) for inputs in widths)
        self.up = up

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        merged = self.merge(maps)
        return [*merged, merged[-1][..., ::2, ::2]]

    def merge(self, maps: Sequence[Tensor]) -> list[Tensor]:
        """M_i, fine to coarse."""
        level, *finer = [conv(x) for conv, x in zip(self.lateral, maps, strict=True)][::-1]
        found = [level]
        for side in finer:
            level = side + self.up(level, side)
            found.append(level)
        return found[::-1]


class NoLevels(nn.Module):
    """Nothing coarser."""

    def forward(self, coarsest: Tensor) -> list[Tensor]:
        return []


class SubsampledLevel(nn.Module):
    """One more level: every second pixel."""

    def forward(self, coarsest: Tensor) -> list[Tensor]:
        return [coarsest[..., ::2, ::2]]


class ConvLevels(nn.Module):
    """Two more levels: P6 = conv/2(P5), P7 = conv/2(ReLU(P6))."""

    def __init__(self, width: int):
        super().__init__()
        self.p6 = nn.Conv2d(width, width, 3, 2, 1)
        self.p7 = nn.Conv2d(width, width, 3, 2, 1)

    def forward(self, coarsest: Tensor) -> list[Tensor]:
        p6 = self.p6(coarsest)
        return [p6, self.p7(F.relu(p6))]


class SmoothedPyramid(nn.Module):
    """The original: conv3×3 on every merged map, and the levels of `coarser`, made of the coarsest."""

    def __init__(self, widths: Sequence[int], width: int, coarser: nn.Module, up: Resize = up_nearest):
        super().__init__()
        self.pyramid = FeaturePyramid(widths, width, up)
        self.smooth = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in widths)
        self.coarser = coarser
        for conv in (*self.pyramid.lateral, *self.smooth):
            nn.init.kaiming_uniform_(conv.weight, a=1)
            nn.init.zeros_(conv.bias)

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        found = [conv(x) for conv, x in zip(self.smooth, self.pyramid.merge(maps), strict=True)]
        return [*found, *self.coarser(found[-1])]


def lay_out(maps: Tensor, numbers: int) -> Tensor:
    """Maps (b, k · numbers, h, w) of k predictions a cell -> (b, h · w · k, numbers), a cell's side by side."""
    b, _, h, w = maps.shape
    return maps.view(b, -1, numbers, h, w).permute(0, 3, 4, 1, 2).reshape(b, -1, numbers)


class SharedHead(nn.Module):
    """One head for all levels: maps (b, d, h_i, w_i) -> predictions (b, Σ h_i w_i k, numbers)"""

    def __init__(self, head: nn.Module, numbers: int):
        super().__init__()
        self.head, self.numbers = head, numbers

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        return torch.cat([lay_out(self.head(x), self.numbers) for x in maps], dim=1)


class LevelHeads(nn.Module):
    """A head for each level: maps (b, d, h_i, w_i) -> predictions (b, Σ h_i w_i k, numbers)"""

    def __init__(self, heads: Sequence[nn.Module], numbers: int):
        super().__init__()
        self.heads, self.numbers = nn.ModuleList(heads), numbers

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        pairs = zip(self.heads, maps, strict=True)
        return torch.cat([lay_out(head(x), self.numbers) for head, x in pairs], dim=1)
