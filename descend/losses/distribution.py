"""Distances between the distribution of a batch and a target, for training a generator of numbers directly.

    moments           KL(N(m, v) ‖ N(μ, s²)) = ½ (v/s² + (m − μ)²/s² − 1 − log(v/s²))       m, v: those of the batch
    kernel estimate   p̂(t) = (1/n) Σ_i N(t; x_i, h²)                                        smooth in x, unlike counts
    KL                ∫ q log(q/p̂) dt        q, p̂: kernel estimates of real and generated numbers
    total variation   ½ ∫ |q − p̂| dt         from 0 (equal) to 1 (apart)

Both integrals are sums over a grid of t. Only numbers on a line: in many dimensions no such estimate is possible, which
is what adversaries and bounds are for.

Systems: push-forward-generator
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

LEAST = 1e-12  # density below which KL counts as if it were this


def moment_kl(x: Tensor, mu: float, s: float) -> Tensor:
    """KL(N(m, v) ‖ N(μ, s²)) with mean and variance of x (n)."""
    ratio = x.var(unbiased=False) / s**2
    return (ratio + (x.mean() - mu).square() / s**2 - 1 - ratio.log()) / 2


def kernel_density(x: Tensor, grid: Tensor, width: float) -> Tensor:
    """p̂ of numbers x (n) at the points of a grid (t): (t)"""
    return (-((grid[:, None] - x) / width).square() / 2).exp().mean(1) / (width * math.sqrt(2 * math.pi))


def kl_divergence(real: Tensor, made: Tensor, grid: Tensor) -> Tensor:
    """∫ q log(q/p̂) of densities on a grid (t)."""
    terms = real.xlogy(real) - real * made.clamp(min=LEAST).log()
    return torch.trapezoid(terms, grid)


def total_variation(real: Tensor, made: Tensor, grid: Tensor) -> Tensor:
    """½ ∫ |q − p̂| of densities on a grid (t)."""
    return torch.trapezoid((real - made).abs(), grid) / 2
