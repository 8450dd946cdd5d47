"""Forward diffusion: an image becomes noise, a step at a time or in one jump; and the way back when x_0 is known.

    naive         x_t = x_{t−1} + √β ε          q(x_t | x_0) = N(x_0, tβ I): the variance grows without bound
    DDPM step     x_t = √(1 − β_t) x_{t−1} + √β_t ε_t
    kernel        x_t = √ᾱ_t x_0 + √(1 − ᾱ_t) ε          q(x_t | x_0) = N(√ᾱ_t x_0, (1 − ᾱ_t) I) → N(0, I)
    posterior     q(x_{t−1} | x_t, x_0) = N(μ̃_t, β̃_t I),   β̃_t = (1 − ᾱ_{t−1}) / (1 − ᾱ_t) β_t
                  μ̃_t = √ᾱ_{t−1} β_t / (1 − ᾱ_t) x_0 + √α_t (1 − ᾱ_{t−1}) / (1 − ᾱ_t) x_t
                      = (x_t − β_t / √(1 − ᾱ_t) ε) / √α_t

The chain of steps and the jump have the same distribution: variances of independent noise add.
Errata: DLN-C.120 prints naive noise β ε and tβ ε, whose variances are β² and (tβ)²; the scale is √β and √(tβ), as here.
DLN-C.121 prints that q(x_t | x_{t−1}) tends to N(0, I); it is q(x_t | x_0) that does.

Everything takes values of ᾱ, so that a jump over several steps is the same code: α = ᾱ_t / ᾱ_s, β = 1 − α.

Systems: ddpm-forward, diffusion-elbo
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

Number = Tensor | float


class Gaussian(NamedTuple):
    """N(mean, variance I)"""

    mean: Tensor
    variance: Number


def naive_step(x: Tensor, eps: Tensor, beta: float) -> Tensor:
    """x_{t−1} + √β ε"""
    return x + beta**0.5 * eps


def naive_jump(x0: Tensor, eps: Tensor, beta: float, t: int) -> Tensor:
    """x_0 + √(tβ) ε: t naive steps at once."""
    return x0 + (t * beta) ** 0.5 * eps


def noise_step(x: Tensor, eps: Tensor, beta: Number) -> Tensor:
    """√(1 − β) x_{t−1} + √β ε"""
    return (1 - beta) ** 0.5 * x + beta**0.5 * eps


def add_noise(x0: Tensor, eps: Tensor, abar: Number) -> Tensor:
    """x_t = √ᾱ x_0 + √(1 − ᾱ) ε, for a batch with ᾱ (b, 1, ..) of different t."""
    return abar**0.5 * x0 + (1 - abar) ** 0.5 * eps


def posterior_variance(abar: Number, before: Number) -> Number:
    """β̃ = (1 − ᾱ_{t−1}) / (1 − ᾱ_t) β_t"""
    return (1 - before) / (1 - abar) * (1 - abar / before)


def posterior(x0: Tensor, xt: Tensor, abar: Number, before: Number) -> Gaussian:
    """q(x_{t−1} | x_t, x_0) by Bayes' rule; `before` is ᾱ_{t−1}."""
    alpha = abar / before
    mean = before**0.5 * (1 - alpha) / (1 - abar) * x0 + alpha**0.5 * (1 - before) / (1 - abar) * xt
    return Gaussian(mean, posterior_variance(abar, before))


def posterior_mean_from_noise(xt: Tensor, eps: Tensor, abar: Number, before: Number) -> Tensor:
    """μ̃ = (x_t − β / √(1 − ᾱ) ε) / √α; with a predicted ε it is the network's mean μ_θ."""
    alpha = abar / before
    return (xt - (1 - alpha) / (1 - abar) ** 0.5 * eps) / alpha**0.5


def reverse_variance(abar: Number, before: Number, variance: str) -> Number:
    """σ_t² of p_θ(x_{t−1} | x_t): β_t ("beta", exact for N(0, I) data) or β̃_t ("posterior", exact for one point)."""
    if variance == "beta":
        return 1 - abar / before
    if variance == "posterior":
        return posterior_variance(abar, before)
    raise ValueError(f"variance {variance!r}: choose beta or posterior")
