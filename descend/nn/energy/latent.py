"""Latent-variable energy: an answer is good when some z explains it.

    E(x, y, z) = C(y, Dec(Pred(x), z)) + λ R(z)          C: the cost of a wrong answer, ‖y − ŷ‖² here
    F(x, y) = min_z E(x, y, z)                           the energy of a pair: over z, for the y that is given
    ŷ(z) = Dec(Pred(x), z)                               several answers for one x: z moves over them

z is found by proximal descent, or by trying every code of a codebook:

    z ← settle(z − η ∂C/∂z)                              settle: the proximal map of ηλR, or a projection

Without R and with a z as large as y, every y is reached and F is 0 everywhere: no energy at all. What limits z
(`nn/energy/limits.py`) makes it one.

Systems: latent-variable-ebm
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from descend.nn.energy.limits import Limit


class Explained(NamedTuple):
    """F(x, y) (b) and the z (b, k) that it was reached with."""

    energy: Tensor
    z: Tensor


class LatentEnergy(nn.Module):
    """`predict`: x (b, ..) -> (b, w); `decode`: the two of them, joined (b, w + k), -> (b, d)."""

    def __init__(self, predict: nn.Module, decode: nn.Module, limit: Limit, weight: float = 0.0):
        """`weight` is λ."""
        super().__init__()
        self.predict, self.decode, self.limit, self.weight = predict, decode, limit, weight

    def answer(self, x: Tensor, z: Tensor) -> Tensor:
        """Dec(Pred(x), z)"""
        return cast("Tensor", self.decode(torch.cat([self.predict(x), z], -1)))

    def cost(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        """C(y, Dec(Pred(x), z)) = ‖y − ŷ‖² of each example."""
        return (y - self.answer(x, z)).square().flatten(1).sum(1)

    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        """E(x, y, z) (b)"""
        return self.cost(x, y, z) + self.weight * self.limit.penalty(z)

    def explain(self, x: Tensor, y: Tensor, z: Tensor, eta: float, steps: int) -> Explained:
        """min_z E by proximal descent from z; the energy keeps a graph to the weights, z does not."""
        z = self.limit.settle(z.detach(), eta * self.weight)
        for _ in range(steps):
            with torch.enable_grad():
                at = z.requires_grad_()
                slope = torch.autograd.grad(self.cost(x, y, at).sum(), at)[0]
            z = self.limit.settle(z.detach() - eta * slope, eta * self.weight)
        return Explained(self(x, y, z), z)

    def explain_by_codes(self, x: Tensor, y: Tensor, codes: Tensor) -> Explained:
        """min over the rows of `codes` (m, k), each of them tried."""
        energies = torch.stack([self(x, y, code.expand(len(y), -1)) for code in codes], 1)
        found, at = energies.min(1)
        return Explained(found, codes[at])
