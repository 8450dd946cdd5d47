"""Autoregressive flows: each variable is bent by what comes before it. The two directions cost differently.

    MAF   x_n = h(z_n; g_n(x_{1:n−1}))      density: all z at once, 1 pass      sampling: D passes, x_1 first
    IAF   x_n = h(z_n; g_n(z_{1:n−1}))      sampling: 1 pass                    density: D passes

g is one masked network (`made.py`). The Jacobian ∂z/∂x of MAF is LOWER triangular with rows z_i and columns x_j, the
convention of DLN's own chapter, which prints "upper"; its log-determinant is the sum of log|dh⁻¹/dx_n| either way. IAF
is MAF with x and z exchanged, and h by h⁻¹. A coupling layer has 2 groups and so 2 passes, the first of which is free.

Systems: masked-autoregressive-flow, inverse-autoregressive-flow
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.nn.flow.bijection import Bijection, Moved
from descend.nn.flow.fused import Step
from descend.nn.flow.made import MADE, MaskedLinear
from descend.nn.flow.transforms import Affine, Transform

Bend = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class MaskedAutoregressive(Bijection):
    """MAF: `inverse` is one pass of the network, `forward` as many as there are variables."""

    def __init__(self, made: MADE, transform: Transform):
        super().__init__()
        self.made, self.transform = made, transform

    def forward(self, z: Tensor) -> Moved:
        return follow(self.made, self.transform.forward, z)

    def inverse(self, x: Tensor) -> Moved:
        z, log_slope = self.transform.inverse(x, self.made(x))
        return z, log_slope.sum(1)

    def affine(self) -> Step | None:
        if not isinstance(self.transform, Affine) or self.made.context is not None:
            return None
        layers = self.made.layers
        masks = tuple(layer.mask for layer in layers if isinstance(layer, MaskedLinear))
        return Step(slice(None), slice(None), self.transform.limit, layers, masks)


class InverseAutoregressive(Bijection):
    """IAF: `forward` is one pass of the network, `inverse` as many as there are variables.

    With a context (b, c) every variable may depend on it too: a layer of a posterior q(z | x).
    """

    def __init__(self, made: MADE, transform: Transform):
        super().__init__()
        self.made, self.transform = made, transform

    def forward(self, z: Tensor, context: Tensor | None = None) -> Moved:
        x, log_slope = self.transform.forward(z, self.made(z, context))
        return x, log_slope.sum(1)

    def inverse(self, x: Tensor, context: Tensor | None = None) -> Moved:
        return follow(self.made, self.transform.inverse, x, context)


def follow(made: MADE, bend: Bend, given: Tensor, context: Tensor | None = None) -> Moved:
    """The direction that is not parallel: y_n = bend(given_n; g_n(y_{1:n−1})), degree by degree, from y = given.

    After pass k the variables of the k lowest degrees are right, and stay so; what later ones hold does not matter,
    since no right one depends on them.
    """
    y, log_slope = given, torch.zeros_like(given)
    for degree in sorted(set(made.degrees)):
        now = torch.tensor([d == degree for d in made.degrees], device=given.device)
        bent, slope = bend(given, made(y, context))
        y, log_slope = torch.where(now, bent, y), torch.where(now, slope, log_slope)
    return y, log_slope.sum(1)


def orders(size: int, layers: int) -> list[list[int]]:
    """The degrees of each of the layers: 1..D and D..1 in turn, so that none is always first."""
    return [list(range(1, size + 1)) if n % 2 == 0 else list(range(size, 0, -1)) for n in range(layers)]
