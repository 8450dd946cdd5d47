"""Diffusion in continuous time: stochastic differential equations, t from 0 (data) to 1 (noise).

    forward    dx = f(x, t) dt + g(t) dw                       increments of w over Δ are N(0, Δ)
    reverse    dx = [f(x, t) − g(t)² ∇ log p_t(x)] dt + g(t) dw̄,   dt < 0
    flow       dx/dt = f(x, t) − ½ g(t)² ∇ log p_t(x)          the same marginals p_t without noise

    VE         f = 0                  g² = dσ_t² / dt          x_t = x_0 + √(σ_t² − σ_0²) ε, σ_t = σ_min (σ_max/σ_min)^t
    VP         f = −½ β(t) x          g² = β(t)                x_t = √ᾱ x_0 + √(1 − ᾱ) ε,     ᾱ = exp(−∫_0^t β)
    sub-VP     f = −½ β(t) x          g² = β(t) (1 − ᾱ²)       x_t = √ᾱ x_0 + (1 − ᾱ) ε

with β(t) = β_0 + t (β_1 − β_0), 0.1 to 20. DDPM's chain with β_t = β(t/T) / T is VP in steps of 1/T; its numbers are
0.1/1000 = 1e-4 and 20/1000 = 0.02. VP and sub-VP are only named in DLN-C.157; these are the forms of the paper.

Systems: score-sde, ve-vp-sde
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.ops.diffusion.schedule import spread
from descend.ranges import NonNegative, Positive


class SDE(ABC):
    """dx = f(x, t) dt + g(t) dw on t in 0..1. Times are tensors (b) or ()."""

    @abstractmethod
    def drift(self, x: Tensor, t: Tensor) -> Tensor:
        """f(x, t)"""

    @abstractmethod
    def diffusion(self, t: Tensor) -> Tensor:
        """g(t), in the shape of t"""

    @abstractmethod
    def marginal(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """The factor m and deviation s of q(x_t | x_0) = N(m x_0, s² I), in the shape of t."""

    @property
    @abstractmethod
    def prior_std(self) -> float:
        """Deviation of the noise that samples begin with."""

    def noised(self, x0: Tensor, t: Tensor, eps: Tensor) -> Tensor:
        """x_t = m x_0 + s ε"""
        mean, std = (spread(v, x0) for v in self.marginal(t))
        return mean * x0 + std * eps

    def prior_log_prob(self, x: Tensor) -> Tensor:
        """log N(x; 0, prior_std² I), one value for each example."""
        z = (x / self.prior_std).flatten(1)
        return -0.5 * (z.square() + math.log(2 * math.pi)).sum(1) - z.shape[1] * math.log(self.prior_std)

    def reverse_drift(self, x: Tensor, t: Tensor, score: Tensor) -> Tensor:
        """f − g² ∇ log p_t, the drift of the reverse SDE; time runs backwards, dt < 0."""
        return self.drift(x, t) - spread(self.diffusion(t), x).square() * score

    def flow(self, x: Tensor, t: Tensor, score: Tensor) -> Tensor:
        """f − ½ g² ∇ log p_t, the velocity of the probability flow."""
        return self.drift(x, t) - 0.5 * spread(self.diffusion(t), x).square() * score


@dataclass(frozen=True)
class VE(SDE):
    """Variance exploding: noise is added, the image stays."""

    sigma_min: Positive = 0.01
    sigma_max: Positive = 50.0

    def sigma(self, t: Tensor) -> Tensor:
        """σ_min (σ_max / σ_min)^t"""
        return self.sigma_min * (self.sigma_max / self.sigma_min) ** t

    def drift(self, x: Tensor, t: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def diffusion(self, t: Tensor) -> Tensor:
        """√(dσ²/dt) = σ_t √(2 ln(σ_max / σ_min))"""
        return self.sigma(t) * math.sqrt(2 * math.log(self.sigma_max / self.sigma_min))

    def marginal(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """m = 1, s² = σ_t² − σ_0²"""
        return torch.ones_like(t), (self.sigma(t).square() - self.sigma_min**2).sqrt()

    @property
    def prior_std(self) -> float:
        return self.sigma_max


@dataclass(frozen=True)
class VP(SDE):
    """Variance preserving: the image fades while noise comes in; DDPM in continuous time."""

    beta_min: NonNegative = 0.1
    beta_max: Positive = 20.0

    def beta(self, t: Tensor) -> Tensor:
        """β(t)"""
        return self.beta_min + t * (self.beta_max - self.beta_min)

    def abar(self, t: Tensor) -> Tensor:
        """exp(−∫_0^t β)"""
        return (-self.beta_min * t - 0.5 * t.square() * (self.beta_max - self.beta_min)).exp()

    def drift(self, x: Tensor, t: Tensor) -> Tensor:
        return -0.5 * spread(self.beta(t), x) * x

    def diffusion(self, t: Tensor) -> Tensor:
        return self.beta(t).sqrt()

    def marginal(self, t: Tensor) -> tuple[Tensor, Tensor]:
        abar = self.abar(t)
        return abar.sqrt(), (1 - abar).sqrt()

    @property
    def prior_std(self) -> float:
        return 1.0


@dataclass(frozen=True)
class SubVP(VP):
    """As VP with less noise: its variance is never larger."""

    def diffusion(self, t: Tensor) -> Tensor:
        return (self.beta(t) * (1 - self.abar(t).square())).sqrt()

    def marginal(self, t: Tensor) -> tuple[Tensor, Tensor]:
        abar = self.abar(t)
        return abar.sqrt(), 1 - abar
