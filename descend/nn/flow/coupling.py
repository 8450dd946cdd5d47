"""Coupling layers: a part of the coordinates stays, and says how the others are bent.

    z = (z_A, z_B)        x_A = z_A        x_B = h(z_B; g(z_A))        z_B = h⁻¹(x_B; g(x_A))

    affine h (RealNVP):   x_B = e^{s(z_A)} ∘ z_B + b(z_A)        z_B = e^{−s} ∘ (x_B − b)
    log|det ∂z/∂x| = Σ_j log|∂h⁻¹/∂x_Bj|  =  −Σ_j s_j           the Jacobian is block lower triangular

g is an ordinary network, whatever h is (DLN prints it as f⁻¹ in one place); s and b are two outputs of one network.
Layers alternate which part stays. A coupling layer is an autoregressive one with 2 groups instead of D.

Systems: realnvp, general-coupling-flow
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.nn.flow.bijection import Bijection, Moved
from descend.nn.flow.fused import Step
from descend.nn.flow.transforms import Affine, Transform

START = 0.01  # of the usual size of the last layer's weights: a new layer is near the identity


class Conditioner(nn.Module):
    """g: what stays (b, inputs) -> numbers of h for each of the others (b, outputs, numbers)"""

    def __init__(self, inputs: int, outputs: int, numbers: int, width: int, depth: int):
        super().__init__()
        self.outputs, self.numbers = outputs, numbers
        sizes = [inputs, *[width] * depth, outputs * numbers]
        self.layers = nn.ModuleList(nn.Linear(n, out) for n, out in pairwise(sizes))
        shrink_last(self.layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = layer(x).relu_()
        return self.layers[-1](x).view(len(x), self.outputs, self.numbers)


def shrink_last(layers: nn.ModuleList) -> None:
    """Start near numbers of 0, which are the identity."""
    for parameter in layers[-1].parameters():
        with torch.no_grad():
            parameter.mul_(START)


class Coupling(Bijection):
    """The coordinates in `kept` stay and the others move by h; `kept` is at the beginning or at the end of 0..size−1.

    Args:
        size: D.
        kept: which coordinates stay, such as range(0, 2) or range(2, 5) of 5.
        conditioner: kept (b, len(kept)) -> numbers (b, size − len(kept), transform.numbers).
        transform: h.
    """

    def __init__(self, size: int, kept: range, conditioner: nn.Module, transform: Transform):
        super().__init__()
        if not 0 < len(kept) < size or (kept.start and kept.stop != size):
            raise ValueError(f"coordinates {kept.start}..{kept.stop - 1} of {size} cannot be what stays")
        self.first = kept.start == 0
        self.cut = kept.stop if self.first else kept.start
        self.conditioner, self.transform = conditioner, transform

    def forward(self, z: Tensor) -> Moved:
        kept, moved = self.divide(z)
        x, log_slope = self.transform.forward(moved, self.conditioner(kept))
        return self.join(kept, x), log_slope.sum(1)

    def inverse(self, x: Tensor) -> Moved:
        kept, moved = self.divide(x)
        z, log_slope = self.transform.inverse(moved, self.conditioner(kept))
        return self.join(kept, z), log_slope.sum(1)

    def divide(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What stays, and what moves."""
        kept, moved = self.parts()
        return x[:, kept], x[:, moved]

    def affine(self) -> Step | None:
        if isinstance(self.transform, Affine) and isinstance(self.conditioner, Conditioner):
            return Step(*self.parts(), self.transform.limit, self.conditioner.layers)
        return None

    def parts(self) -> tuple[slice, slice]:
        """Where what stays is, and what moves."""
        before, after = slice(None, self.cut), slice(self.cut, None)
        return (before, after) if self.first else (after, before)

    def join(self, kept: Tensor, moved: Tensor) -> Tensor:
        return torch.cat([kept, moved] if self.first else [moved, kept], 1)


def alternate(size: int, layers: int) -> list[range]:
    """What stays in each of the layers, in turn; the last one, next to the data, keeps the first half."""
    cut = size - size // 2
    return [range(cut) if n % 2 == 0 else range(cut, size) for n in reversed(range(layers))]
