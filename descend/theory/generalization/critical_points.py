"""Critical points: what the Hessian says of them, and how noise leaves a saddle.

    ∇E = 0;  H positive definite: a minimum;  negative definite: a maximum;  eigenvalues of both signs: a saddle
    an eigenvalue 0 and no two signs: undecided          x⁴ has a minimum at 0, x³ none, and both have H = 0

Erratum: MF 9.3.1 tests for minima with H ⪰ 0 and for maxima with H ⪯ 0. These are necessary, not sufficient.

In many dimensions a random symmetric H is hardly ever definite. Gaussian (variance 2 on the diagonal, 1 beside it):
the share of positive definite ones is 1/2 for n = 1, (2 − √2)/4 for n = 2, and falls faster than exponentially.

Along a direction of curvature −λ, gradient descent with noise of deviation σ in the gradient moves as

    u ← (1 + η λ) u + η σ ε,   u₀ = 0:    E u_t² = η² σ² (g^{2t} − 1)/(g² − 1),  g = 1 + η λ

Without noise it stays on the saddle for ever; with noise it has left a range r after about log(r/σ) / log g steps.

Systems: critical-point-classification
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def classify(h: Tensor, tolerance: float = 1e-9) -> str:
    """minimum, maximum, saddle or undecided; `tolerance` is relative to the largest absolute eigenvalue."""
    values = torch.linalg.eigvalsh(h)
    least = tolerance * float(values.abs().max())
    up, down = bool((values > least).any()), bool((values < -least).any())
    if up and down:
        return "saddle"
    flat = bool((values.abs() <= least).any())
    return "undecided" if flat else "minimum" if up else "maximum"


def random_symmetric(n: int, draws: int, random: torch.Generator) -> Tensor:
    """Gaussian symmetric matrices (draws, n, n): (A + Aᵀ)/√2."""
    a = torch.randn(draws, n, n, generator=random, dtype=torch.float64)
    return (a + a.mT) / math.sqrt(2)


def definite_share(matrices: Tensor) -> float:
    """The share of positive definite ones: those with a Cholesky factor."""
    return float((torch.linalg.cholesky_ex(matrices).info == 0).double().mean())


def spread_on_saddle(steps: int, lr: float, curvature: float, noise: float) -> float:
    """√E u_t² along a direction of curvature −λ, from u₀ = 0."""
    g = 1 + lr * curvature
    return lr * noise * math.sqrt((g ** (2 * steps) - 1) / (g**2 - 1))


def steps_to_leave(reach: float, lr: float, curvature: float, noise: float) -> float:
    """The number of steps after which √E u_t² is `reach`; infinite without noise."""
    if noise == 0:
        return math.inf
    g = 1 + lr * curvature
    return math.log(1 + (reach / (lr * noise)) ** 2 * (g**2 - 1)) / (2 * math.log(g))
