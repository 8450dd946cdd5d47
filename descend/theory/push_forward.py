"""Push-forward: the distribution of x = g(z) when z follows a simple one.

    p_θ = g_θ[π]         z ~ π,  x = g_θ(z)                        samples through any g; the inverse is not needed
    affine               z ~ N(μ, S),  x = A z + b                 x ~ N(A μ + b, A S Aᵀ)
    invertible           log p(x) = log π(g⁻¹(x)) + log |det ∂g⁻¹/∂x|
    on a line            g = F⁻¹ ∘ Φ turns N(0, 1) into the distribution with the quantile function F⁻¹

A generator network is such a g from R^d to the pixels of an image, d much smaller than their number; no density exists
then, which is why it is trained by samples (`labs/direct_generator.py`) or by an adversary (`models/gan.py`).

Systems: push-forward-generator
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]


def push_affine(mean: Tensor, covariance: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """A μ + b and A S Aᵀ: mean (d), covariance (d, d), A (n, d), b (n)."""
    return a @ mean + b, a @ covariance @ a.T


def push_log_prob(log_prior: Map, inverse: Map, x: Tensor) -> Tensor:
    """log p(x) of points (n, d) for an invertible g, from g⁻¹ for one point (d) and log π for points (n, d)."""
    z = torch.stack([inverse(point) for point in x])
    jacobians = torch.stack([torch.autograd.functional.jacobian(inverse, point) for point in x])
    return log_prior(z) + torch.linalg.slogdet(jacobians).logabsdet


def push_normal(quantile: Map, z: Tensor) -> Tensor:
    """F⁻¹(Φ(z)): standard normal numbers become numbers with the quantile function F⁻¹."""
    return quantile(torch.special.ndtr(z))
