"""The Path Aggregation Network's neck: what is seen at each scale reaches all others, down the pyramid and up again.

    top-down      N_L = C_L,      N_l = F_l(C_l, up(N_{l+1}))          meaning flows to the fine maps
    bottom-up     P_1 = N_1,      P_{l+1} = G_l(N_{l+1}, down(P_l))    places flow to the coarse maps

up doubles a map by repeating its pixels, down is a 3×3 unit of stride 2. The book leaves the fusion open (MF 24.3.2):
`PathAggregation` lays the maps beside each other and mixes them with a block, and keeps the width of every level
(YOLOv8; `NarrowedPathAggregation`, YOLOX's, halves the channels before they go down);
`SummedPathAggregation` is the paper's, a sum of maps of one width followed by a 3×3 convolution.

Systems: path-aggregation-neck
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.detection.csp import Unit, silu_unit

Mixer = Callable[[int, int], nn.Module]
"""(inputs, outputs) -> a block that mixes maps of one size"""


def double(x: Tensor) -> Tensor:
    """Each pixel four times."""
    return F.interpolate(x, scale_factor=2.0, mode="nearest")


class PathAggregation(nn.Module):
    """Maps of several levels, from fine to coarse, each half as large -> the same sizes and widths."""

    def __init__(self, widths: Sequence[int], mixer: Mixer, unit: Unit = silu_unit):
        super().__init__()
        fine, coarse = widths[:-1], widths[1:]
        self.top_down = nn.ModuleList(mixer(a + b, a) for a, b in zip(fine, coarse, strict=True))
        self.down = nn.ModuleList(unit(a, a, 3, 2) for a in fine)
        self.bottom_up = nn.ModuleList(mixer(a + b, b) for a, b in zip(fine, coarse, strict=True))

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        falling = [maps[-1]]
        for x, mix in zip(reversed(maps[:-1]), reversed(self.top_down), strict=True):
            falling.append(mix(torch.cat([double(falling[-1]), x], dim=1)))
        rising = [falling.pop()]
        for x, down, mix in zip(reversed(falling), self.down, self.bottom_up, strict=True):
            rising.append(mix(torch.cat([down(rising[-1]), x], dim=1)))
        return rising


class NarrowedPathAggregation(nn.Module):
    """The same with 1×1 units that bring a level's maps to the width of the next finer one, before they go down: the
    narrowed maps also meet the ones that come up again. This is YOLOX's."""

    def __init__(self, widths: Sequence[int], mixer: Mixer, unit: Unit = silu_unit):
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.narrow = nn.ModuleList(unit(b, a, 1, 1) for a, b in pairs)
        self.top_down = nn.ModuleList(mixer(2 * a, a) for a, _ in pairs)
        self.down = nn.ModuleList(unit(a, a, 3, 2) for a, _ in pairs)
        self.bottom_up = nn.ModuleList(mixer(2 * a, b) for a, b in pairs)

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        x, narrowed = maps[-1], []
        for level in reversed(range(len(self.narrow))):
            narrowed.append(self.narrow[level](x))
            x = self.top_down[level](torch.cat([double(narrowed[-1]), maps[level]], dim=1))
        rising = [x]
        for level, side in enumerate(reversed(narrowed)):
            rising.append(self.bottom_up[level](torch.cat([self.down[level](rising[-1]), side], dim=1)))
        return rising


class SummedPathAggregation(nn.Module):
    """The same by sums: every level gets `width` channels by a 1×1 convolution first."""

    def __init__(self, widths: Sequence[int], width: int, unit: Unit = silu_unit):
        super().__init__()
        self.lateral = nn.ModuleList(nn.Conv2d(inputs, width, 1) for inputs in widths)
        self.down = nn.ModuleList(unit(width, width, 3, 2) for _ in widths[1:])
        self.mix = nn.ModuleList(unit(width, width, 3, 1) for _ in widths[1:])

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        sides = [layer(x) for layer, x in zip(self.lateral, maps, strict=True)]
        falling = [sides[-1]]
        for x in reversed(sides[:-1]):
            falling.append(x + double(falling[-1]))
        rising = [falling.pop()]
        for x, down, mix in zip(reversed(falling), self.down, self.mix, strict=True):
            rising.append(mix(x + down(rising[-1])))
        return rising
