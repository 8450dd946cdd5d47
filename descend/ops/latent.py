"""Latent vectors z (.., k): drawing them so that gradients pass, and moving among them.

    reparameterised      z = μ + σ ε,  ε ~ N(0, I)                 ∂z/∂μ = 1, ∂z/∂σ = ε: gradients reach the encoder
    score function       ∇ E_q f(z) = E_q[f(z) ∇ log q(z)]         needs no ∂f/∂z, and its variance is much larger
    interpolation        z(t) = (1 − t) z₀ + t z₁                  both ends are reproduced
    attribute direction  Δ = mean z with − mean z without          edit: z + a Δ; a = 0 changes nothing

The encoder gives log σ², so that σ is positive without a constraint. Neither estimator of ∇ E_q f(z) is biased:

    N(μ, σ²):   ∂ log q/∂μ = (z − μ)/σ² = ε/σ          ∂ log q/∂σ = (ε² − 1)/σ

    KL(N(μ, diag σ²) ‖ N(0, I)) = −½ Σ_k (1 + log σ_k² − μ_k² − σ_k²)        0 only at the prior: μ = 0, σ = 1

Systems: reparameterization, latent-traversals, vae-loss
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def reparameterize(mu: Tensor, log_var: Tensor, eps: Tensor) -> Tensor:
    """z = μ + σ ε with noise ε ~ N(0, I) that is given: (.., k) -> (.., k)"""
    return mu + (log_var / 2).exp() * eps


def gaussian_kl_units(mu: Tensor, log_var: Tensor) -> Tensor:
    """KL of every latent unit, ½ (μ² + σ² − log σ² − 1): (.., k), (.., k) -> (.., k). Where it is 0, q is the prior."""
    return (mu.square() + log_var.exp() - log_var - 1) / 2


def gaussian_kl(mu: Tensor, log_var: Tensor) -> Tensor:
    """KL(N(μ, diag σ²) ‖ N(0, I)) in nats: (.., k), (.., k) -> (..)"""
    return gaussian_kl_units(mu, log_var).sum(-1)


def standard_normal_log_prob(z: Tensor) -> Tensor:
    """log N(z; 0, I): (.., k) -> (..)"""
    return -(z.square() + math.log(2 * math.pi)).sum(-1) / 2


def pathwise_gradients(f: Callable[[Tensor], Tensor], mu: Tensor, sigma: Tensor, eps: Tensor) -> tuple[Tensor, Tensor]:
    """(∂/∂μ, ∂/∂σ) of f(μ + σ ε), one row for each ε (n, k): f'(z) and f'(z) ε. f: (n, k) -> (n)."""
    z = (mu + sigma * eps).detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(z).sum(), z)
    return slope, slope * eps


def score_function_gradients(
    f: Callable[[Tensor], Tensor], mu: Tensor, sigma: Tensor, eps: Tensor
) -> tuple[Tensor, Tensor]:
    """(∂/∂μ, ∂/∂σ) by f(z) ∇ log q(z), one row for each ε (n, k): f ε/σ and f (ε² − 1)/σ. f: (n, k) -> (n)."""
    value = f(mu + sigma * eps).detach()[:, None]
    return value * eps / sigma, value * (eps.square() - 1) / sigma


def interpolate(z0: Tensor, z1: Tensor, n: int) -> Tensor:
    """n points from z₀ to z₁ in equal steps, ends included: (.., k), (.., k) -> (n, .., k)"""
    if n < 2:
        raise ValueError(f"{n} points: a walk from one end to the other needs at least 2")
    t = torch.linspace(0, 1, n, dtype=z0.dtype, device=z0.device).view(-1, *[1] * z0.dim())
    return torch.lerp(z0, z1, t)


def attribute_direction(z: Tensor, has: Tensor) -> Tensor:
    """Δ = mean of the codes with an attribute − mean of those without: z (n, k), has (n) -> (k)"""
    has = has.bool()
    if has.all() or not has.any():
        raise ValueError("an attribute direction needs examples with and without the attribute")
    return z[has].mean(0) - z[~has].mean(0)


def move_along(z: Tensor, direction: Tensor, multiples: Tensor) -> Tensor:
    """z + a Δ for every multiple a (n): (.., k), (k) -> (n, .., k)"""
    return z + multiples.view(-1, *[1] * z.dim()) * direction


def latent_grid(n: int, reach: float = 2.0, k: int = 2, units: tuple[int, int] = (0, 1)) -> Tensor:
    """n × n codes (n², k) over a square of two units, from −reach to reach, row by row from the top; others are 0."""
    line = torch.linspace(-reach, reach, n)
    z = torch.zeros(n, n, k)
    z[..., units[0]], z[..., units[1]] = line, line.flip(0)[:, None]
    return z.flatten(0, 1)
