"""The normal distribution, and how sums become normal.

    density            f(x) = exp(−(x − μ)² / 2σ²) / √(2πσ²)                  X ~ N(μ, σ²)
    standardized       Z = (X − μ)/σ ~ N(0, 1)
    cumulated          Φ(z) = ½ (1 + erf(z/√2))
    sum of n terms     mean n μ, variance n σ² when they are independent
    central limit      (S_n − n μ)/(σ √n) → N(0, 1), whatever the terms are
    Kolmogorov         D = sup_z |F(z) − Φ(z)|, the largest gap of the cumulated distributions; it falls as 1/√n

The experiments: sums of dice, exactly (one die is flat, 100 dice are a bell around 350) and sampled; and neuron sums
w_1 x_1 + … + w_n x_n with skewed inputs (exponential, one-sided).

Systems: normal-distribution-and-clt
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.ops.math.probability import expectation, uniform, variance


def density(x: Tensor, mu: float = 0.0, sigma: float = 1.0) -> Tensor:
    """f(x) of N(μ, σ²)."""
    return (-((x - mu) ** 2) / (2 * sigma**2)).exp() / math.sqrt(2 * math.pi * sigma**2)


def sample(n: int, mu: float, sigma: float, random: torch.Generator) -> Tensor:
    """n draws of N(μ, σ²): μ + σ Z."""
    return mu + sigma * torch.randn(n, generator=random, dtype=torch.float64)


def standardize(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """The z-score (x − μ)/σ: how many deviations from the mean."""
    return (x - mu) / sigma


def cumulative(z: Tensor) -> Tensor:
    """Φ(z) = P(Z ≤ z)."""
    return (1 + torch.erf(z / math.sqrt(2))) / 2


# Sums


def moments_of_sum(x: Tensor, p: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Mean and variance of the sum of n independent draws of the table (x, p)."""
    return n * expectation(x, p), n * variance(x, p)


def dice_table(n: int, faces: int = 6) -> tuple[Tensor, Tensor]:
    """The sums of n dice and their exact probabilities: the table of one die, convolved n times."""
    p = torch.ones(1, dtype=torch.float64)
    die = uniform(faces)
    for _ in range(n):
        p = torch.nn.functional.conv1d(p.view(1, 1, -1), die.flip(0).view(1, 1, -1), padding=faces - 1).flatten()
    return torch.arange(n, n * faces + 1, dtype=torch.float64), p


def dice_sums(n: int, trials: int, random: torch.Generator) -> Tensor:
    """The sum of n dice, thrown `trials` times."""
    return torch.randint(1, 7, (trials, n), generator=random).sum(1).double()


def neuron_sums(w: Tensor, trials: int, random: torch.Generator) -> Tensor:
    """w·x for weights w (n) and inputs x_i from the exponential distribution (mean 1, variance 1, skewness 2)."""
    return torch.empty(trials, len(w), dtype=torch.float64).exponential_(generator=random) @ w


def distance_of_table(x: Tensor, p: Tensor) -> Tensor:
    """D between a table with rising x, standardized, and N(0, 1)."""
    return _largest_gap(p, standardize(x, expectation(x, p), variance(x, p).sqrt()))


def distance_of_sample(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """D between a sample (n), standardized, and N(0, 1): the Kolmogorov–Smirnov statistic."""
    values, counts = x.unique(return_counts=True)
    return _largest_gap(counts.double() / len(x), standardize(values, mu, sigma))


def _largest_gap(p: Tensor, z: Tensor) -> Tensor:
    """max |F − Φ| for steps of height p at rising z; before and after each step, because F jumps there."""
    after, phi = p.cumsum(-1), cumulative(z)
    return torch.maximum((after - phi).abs(), (after - p - phi).abs()).max()
