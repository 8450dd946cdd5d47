"""Cross stage partial blocks: only a part of the channels passes through the heavy layers; the rest goes round them.

    split          x = [x₁, x₂],  y = T [x₁, F(x₂)]                    `CspBlock`: two halves, T a 1×1 unit
    two entries    y = T [F(B x), A x]                                 `CspEntryBlock`: two 1×1 units choose the halves
    chain          [c₀, c₁] = A x,  c_{i+1} = F_i(c_i),                `CspChain`: every step of the chain is kept
                   y = T [c₀, c₁, .., c_{n+1}]
    ELAN           c₁ = A x, c₂ = B x, c_{i+1} = two 3×3 units of c_i  `ElanBlock`: T [c₁, c₂, c₃, ..]
    E-ELAN         the same in g groups of channels, whose outputs are shuffled and summed: `GroupedElanBlock`

∂y/∂x₁ does not pass through F. Where F is a stack of n Darknet residual units (1×1 C → C/2, 3×3 C/2 → C: 5n C² H W
multiplications), half of the channels cost 2.5n, and with T and the two entries 2.5n + 2: 45% less at n = 8. The book's
"about 50%" is F alone (MF 24.1.4). A split of plain C → C convolutions would save three quarters.

Units are convolution, batch norm, SiLU, unless another activation is given. YOLOv4's are Mish, Darknet's leaky ReLU.

Systems: csp-block-and-darknet, yolox-v7-v9
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.convolution.unit import ConvUnit

Unit = Callable[[int, int, int, int], nn.Module]
"""(inputs, outputs, kernel, stride) -> a convolution with norm and activation"""


def silu_unit(inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> ConvUnit:
    """SiLU(BN(conv(x))), of the same size at stride 1."""
    return ConvUnit(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.SiLU(inplace=True))


def leaky_unit(inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> ConvUnit:
    """Darknet's unit: a leaky ReLU of slope 0.1."""
    return ConvUnit(darknet_convolution(inputs, outputs, kernel, stride), nn.LeakyReLU(0.1, inplace=True))


def mish_unit(inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> ConvUnit:
    """YOLOv4's unit: Mish(z) = z tanh(ln(1 + eᶻ))."""
    return ConvUnit(darknet_convolution(inputs, outputs, kernel, stride), nn.Mish(inplace=True))


def darknet_convolution(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
    """Without bias, of the same size at stride 1; Darknet starts from N(0, 2 / fan_in)."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight)
    return conv


class PairUnit(nn.Module):
    """Two 3×3 units in a row of the same width."""

    def __init__(self, width: int, unit: Unit = silu_unit):
        super().__init__()
        self.first, self.second = unit(width, width, 3, 1), unit(width, width, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


class DarknetPair(nn.Module):
    """unit3×3(unit1×1(x)): down to `hidden` channels and up again."""

    def __init__(self, width: int, hidden: int, unit: Unit = leaky_unit):
        super().__init__()
        self.reduce, self.expand = unit(width, hidden, 1, 1), unit(hidden, width, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.expand(self.reduce(x))


class DarknetResidual(DarknetPair):
    """x + unit3×3(unit1×1(x))"""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


class ResidualPair(PairUnit):
    """x + two 3×3 units of x."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


class CspBlock(nn.Module):
    """y = T [x₁, F(x₂)] around any F that keeps half of the channels: (b, c, h, w) -> (b, c', h, w)."""

    def __init__(self, inner: nn.Module, transition: nn.Module):
        super().__init__()
        self.inner, self.transition = inner, transition

    def forward(self, x: Tensor) -> Tensor:
        kept, changed = x.chunk(2, dim=1)
        return self.transition(torch.cat([kept, self.inner(changed)], dim=1))


class CspEntryBlock(nn.Module):
    """y = T [F(B x), A x], A and B 1×1 units to `hidden` channels."""

    def __init__(self, inputs: int, outputs: int, hidden: int, inner: nn.Module, unit: Unit = silu_unit):
        super().__init__()
        self.kept, self.changed = unit(inputs, hidden, 1, 1), unit(inputs, hidden, 1, 1)
        self.inner, self.transition = inner, unit(2 * hidden, outputs, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.transition(torch.cat([self.inner(self.changed(x)), self.kept(x)], dim=1))


class CspChain(nn.Module):
    """y = T [c₀, c₁, F₁(c₁), F₂(F₁(c₁)), ..]: every step of the chain of `steps` is kept."""

    def __init__(self, inputs: int, outputs: int, steps: nn.ModuleList, unit: Unit = silu_unit):
        super().__init__()
        half = outputs // 2
        self.entry, self.steps = unit(inputs, 2 * half, 1, 1), steps
        self.transition = unit((2 + len(steps)) * half, outputs, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = list(self.entry(x).chunk(2, dim=1))
        for step in self.steps:
            kept.append(step(kept[-1]))
        return self.transition(torch.cat(kept, dim=1))


def residual_chain(inputs: int, outputs: int, depth: int) -> CspChain:
    """A chain of residual pairs, as in a backbone."""
    return CspChain(inputs, outputs, nn.ModuleList(ResidualPair(outputs // 2) for _ in range(depth)))


def plain_chain(inputs: int, outputs: int, depth: int) -> CspChain:
    """A chain of pairs without shortcuts, as in a neck."""
    return CspChain(inputs, outputs, nn.ModuleList(PairUnit(outputs // 2) for _ in range(depth)))


class ElanBlock(nn.Module):
    """T [A x, B x, c₃, c₄, ..]: c_{i+1} is a pair of 3×3 units of c_i, and all of them are kept."""

    def __init__(self, inputs: int, outputs: int, hidden: int, depth: int = 2, unit: Unit = silu_unit):
        super().__init__()
        self.side, self.entry = unit(inputs, hidden, 1, 1), unit(inputs, hidden, 1, 1)
        self.steps = nn.ModuleList(PairUnit(hidden, unit) for _ in range(depth))
        self.transition = unit((2 + depth) * hidden, outputs, 1, 1)

    def gather(self, x: Tensor) -> Tensor:
        """All paths, from the shortest to the longest, beside each other."""
        kept = [self.side(x), self.entry(x)]
        for step in self.steps:
            kept.append(step(kept[-1]))
        return torch.cat(kept, dim=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.transition(self.gather(x))


class GroupedElanBlock(nn.Module):
    """E-ELAN: expand, shuffle, merge. g ELAN blocks side by side see the same input; the channels of their outputs are
    exchanged between the groups, and the groups are summed."""

    def __init__(self, inputs: int, outputs: int, hidden: int, depth: int = 2, groups: int = 2):
        super().__init__()
        if outputs % groups:
            raise ValueError(f"{outputs} channels cannot be shuffled between {groups} groups")
        self.groups = groups
        self.blocks = nn.ModuleList(ElanBlock(inputs, outputs, hidden, depth) for _ in range(groups))

    def forward(self, x: Tensor) -> Tensor:
        y = shuffle_channels(torch.cat([block(x) for block in self.blocks], dim=1), self.groups)
        return y.unflatten(1, (self.groups, -1)).sum(dim=1)


def shuffle_channels(x: Tensor, groups: int) -> Tensor:
    """Channel i of group j goes to place i g + j: each new group has some of every old one."""
    return x.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)


class PyramidPool(nn.Module):
    """Spatial pyramid pooling: T [x, p(x), p(p(x)), p(p(p(x)))], p a k×k maximum; k = 5 in a row sees 5, 9 and 13."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 5, unit: Unit = silu_unit):
        super().__init__()
        self.entry, self.transition = unit(inputs, inputs // 2, 1, 1), unit(4 * (inputs // 2), outputs, 1, 1)
        self.kernel = kernel

    def forward(self, x: Tensor) -> Tensor:
        kept = [self.entry(x)]
        for _ in range(3):
            kept.append(F.max_pool2d(kept[-1], self.kernel, 1, self.kernel // 2))
        return self.transition(torch.cat(kept, dim=1))
