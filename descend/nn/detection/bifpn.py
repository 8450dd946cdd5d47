"""BiFPN: levels of a pyramid are mixed downward and upward again, with learned weights, several times.

    top-down     T_i = conv(fuse(P_i, up(T_{i+1}))),  T_n = P_n
    bottom-up    O_i = conv(fuse(P_i, T_i, down(O_{i−1}))),  O_1 = T_1,  O_n = conv(fuse(P_n, down(O_{n−1})))
    fuse         Σ_k w_k x_k:   fast       w_k = ReLU(v_k) / (ε + Σ_j ReLU(v_j)),  ε = 10⁻⁴        (`FastFusion`)
                                softmax    w_k = e^{v_k} / Σ_j e^{v_j}                              (`SoftmaxFusion`)
    conv         BN(conv1×1(depthwise3×3(SiLU(x))))        up: nearest        down: max over 3×3, stride 2

The edge from P_i to O_i is the extra one: a level keeps sight of what it came with. Weights of the fast form are not
negative and their sum is 1 but for ε. The first cell brings every level to one width by 1×1 convolutions, one for each
of its two uses. The books name EfficientDet and ask for normalised weights; the rest is the paper's.

Systems: efficientdet
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.convolution.inverted import norm
from descend.nn.detection.fpn import up_nearest

EPSILON = 1e-4
"""Of the sum of the weights."""


class FastFusion(nn.Module):
    """Σ_k w_k x_k with w = ReLU(v) / (ε + Σ ReLU(v)): maps of one shape -> one of them"""

    def __init__(self, count: int):
        super().__init__()
        self.v = nn.Parameter(torch.ones(count))

    def weights(self) -> Tensor:
        """w (count)"""
        v = self.v.relu()
        return v / (EPSILON + v.sum())

    def forward(self, *maps: Tensor) -> Tensor:
        w = self.weights()
        return sum((w[k] * x for k, x in enumerate(maps[1:], 1)), w[0] * maps[0])


class SoftmaxFusion(nn.Module):
    """Σ_k w_k x_k with w = softmax(v): maps of one shape -> one of them"""

    def __init__(self, count: int):
        super().__init__()
        self.v = nn.Parameter(torch.ones(count))

    def weights(self) -> Tensor:
        """w (count)"""
        return self.v.softmax(dim=0)

    def forward(self, *maps: Tensor) -> Tensor:
        w = self.weights()
        return sum((w[k] * x for k, x in enumerate(maps[1:], 1)), w[0] * maps[0])


Fusion = Callable[[int], nn.Module]
"""How many maps are fused -> what fuses them"""


class FusedLevel(nn.Module):
    """BN(conv1×1(depthwise3×3(SiLU(fuse(maps)))))"""

    def __init__(self, width: int, count: int, fusion: Fusion):
        super().__init__()
        self.fuse = fusion(count)
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False)
        self.pointwise = nn.Conv2d(width, width, 1, bias=False)
        self.norm = norm(width)

    def forward(self, *maps: Tensor) -> Tensor:
        return self.norm(self.pointwise(self.depthwise(F.silu(self.fuse(*maps)))))


def halve(x: Tensor) -> Tensor:
    """The maximum over 3×3, every second pixel."""
    return F.max_pool2d(x, 3, 2, 1)


def fit_width(inputs: int, width: int) -> nn.Module:
    """A 1×1 convolution and batch norm; nothing where the width is right."""
    if inputs == width:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, width, 1, bias=False), norm(width))


class MixingCell(nn.Module):
    """Levels, fine to coarse (b, widths[i], h_i, w_i), of which the last has the right width -> (b, width, h_i, w_i)"""

    def __init__(self, widths: Sequence[int], width: int, fusion: Fusion = FastFusion):
        super().__init__()
        n = len(widths)
        if n < 3 or widths[-1] != width:
            raise ValueError(f"a cell needs at least 3 levels, the last of width {width}, not {tuple(widths)}")
        self.enter = nn.ModuleList(fit_width(w, width) for w in widths[:-1])
        self.again = nn.ModuleList(fit_width(w, width) for w in widths[1:-1])
        self.down = nn.ModuleList(FusedLevel(width, 2, fusion) for _ in range(n - 1))
        self.up = nn.ModuleList(FusedLevel(width, 3, fusion) for _ in range(n - 2))
        self.top = FusedLevel(width, 2, fusion)

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        level = maps[-1]
        found: list[Tensor] = []
        for i in reversed(range(len(maps) - 1)):
            x = self.enter[i](maps[i])
            level = self.down[i](x, up_nearest(level, x))
            found.insert(0, level)
        out = [found[0]]
        for i, (mix, again) in enumerate(zip(self.up, self.again, strict=True), 1):
            out.append(mix(again(maps[i]), found[i], halve(out[-1])))
        return [*out, self.top(maps[-1], halve(out[-1]))]


class BiFPN(nn.Module):
    """Maps of the last stages, fine to coarse (b, widths[i], h_i, w_i) -> two levels more, all of one width, mixed by
    `cells` cells."""

    def __init__(self, widths: Sequence[int], width: int, cells: int, fusion: Fusion = FastFusion):
        super().__init__()
        self.coarser = fit_width(widths[-1], width)
        first, later = (*widths, width, width), (width,) * (len(widths) + 2)
        self.cells = nn.ModuleList(MixingCell(later if i else first, width, fusion) for i in range(cells))

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        p6 = halve(self.coarser(maps[-1]))
        levels = [*maps, p6, halve(p6)]
        for cell in self.cells:
            levels = cell(levels)
        return levels
