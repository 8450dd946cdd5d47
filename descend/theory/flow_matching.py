"""Flow matching between Gaussians, in closed form: the velocity that the loss is least for.

    x_0 ~ N(0, I), x_1 ~ N(m, s² I), x_t = (1 − (1 − σ) t) x_0 + t x_1 = a x_0 + t x_1,   a = 1 − (1 − σ) t
    v*(x, t) = E[x_1 − (1 − σ) x_0 | x_t = x] = m + (t s² − (1 − σ) a) / (a² + t² s²) · (x − t m)

    what remains of the loss, E Var(u | x_t), for each coordinate:
    s² + (1 − σ)² − (t s² − (1 − σ) a)² / (a² + t² s²)

Systems: flow-matching
"""

from __future__ import annotations

import torch
from torch import Tensor


def gaussian_velocity(x: Tensor, t: Tensor | float, mean: Tensor, deviation: float, sigma: float = 0.0) -> Tensor:
    """v*(x, t) for x (b, D) and a time, or one for each (b, 1)."""
    slope, variance = _moments(t, deviation, sigma)
    return mean + slope / variance * (x - t * mean)


def least_error(t: Tensor, deviation: float, sigma: float = 0.0) -> Tensor:
    """E Var(u | x_t) of one coordinate at the times t."""
    slope, variance = _moments(t, deviation, sigma)
    return deviation**2 + (1 - sigma) ** 2 - slope**2 / variance


def _moments(time: Tensor | float, deviation: float, sigma: float) -> tuple[Tensor, Tensor]:
    """Cov(u, x_t) and Var(x_t) of one coordinate."""
    t = torch.as_tensor(time)
    a = 1 - (1 - sigma) * t
    return t * deviation**2 - (1 - sigma) * a, a**2 + t**2 * deviation**2
