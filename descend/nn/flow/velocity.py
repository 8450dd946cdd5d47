"""A velocity field in space and time: what a continuous flow integrates.

    v(x, t) = W_L φ(.. φ(W_1 x + w_t t + b_1) ..) + b_L

φ is smooth (tanh or SiLU), since a solver's error estimates are derivatives.
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn


class Velocity(nn.Module):
    """points (b, D) and a time, one for all or one for each (b) -> velocities (b, D)"""

    def __init__(self, size: int, width: int, depth: int, activation: nn.Module):
        super().__init__()
        self.activation = activation
        sizes = [size, *[width] * depth, size]
        self.layers = nn.ModuleList(nn.Linear(n, out) for n, out in pairwise(sizes))
        self.time = nn.Linear(1, width, bias=False)

    def forward(self, x: Tensor, t: Tensor | float) -> Tensor:
        moment = t.view(-1, 1) if isinstance(t, Tensor) else x.new_full((1, 1), t)
        h = self.layers[0](x) + self.time(moment)
        for layer in self.layers[1:]:
            h = layer(self.activation(h))
        return h
