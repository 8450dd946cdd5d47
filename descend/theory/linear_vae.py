"""The linear VAE in closed form: what β does, when the posterior collapses, and the exact likelihood.

    z ~ N(0, I_k)     x | z ~ N(W z + m, s² I)     marginal N(m, W Wᵀ + s² I)     (probabilistic PCA)
    posterior         p(z|x) = N(M⁻¹ Wᵀ(x − m), s² M⁻¹)      M = Wᵀ W + s² I

With a linear encoder and a diagonal q the minimum of  E‖x − Wz‖²/2s² + β KL  has W = U (Λ − β s² I)₊^{1/2}: λ_i, U are
eigenvalues and eigenvectors of the data's covariance, and a direction with λ ≤ β s² gets none. For each direction

    β s² ≥ λ    collapse: q(z|x) = p(z), KL = 0, the reconstruction is the mean        error λ
    else        w² = λ − β s²    var_q = β s²/λ    KL = ½ log(λ / β s²)                error β s²

so a larger β gives worse reconstructions, up to full collapse. DLN's advice ("poor reconstructions: increase β") is
reversed for a β on the KL; it fits one on the reconstruction. With β = 1 and the k largest directions the ELBO is the
exact log-likelihood of probabilistic PCA: q is the posterior.

Systems: beta-vae, vae
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class LinearOptimum(NamedTuple):
    """Of one direction of variance λ."""

    weight: Tensor
    """w² = max(λ − β s², 0)."""
    error: Tensor
    """E(x − x̂)², x̂ decoded from a sample of q."""
    kl: Tensor
    """In nats."""


def linear_optimum(variance: Tensor, noise: float, beta: Tensor | float = 1.0) -> LinearOptimum:
    """The best linear β-VAE of a direction whose data have this variance; `noise` is s² of the decoder."""
    limit = torch.as_tensor(beta * noise, dtype=variance.dtype)
    kept = torch.maximum(variance, limit)
    return LinearOptimum(
        (variance - limit).clamp(min=0), torch.minimum(variance, limit.expand_as(kept)), (kept / limit).log() / 2
    )


def collapses(variance: Tensor, noise: float, beta: float = 1.0) -> Tensor:
    """β s² ≥ λ"""
    return beta * noise >= variance


class LinearVAE(NamedTuple):
    """x | z ~ N(W z + m, s² I), with the encoder that belongs to it."""

    w: Tensor
    """(d, k), orthogonal columns."""
    mean: Tensor
    noise: float

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Means (n, k) and the covariance (k, k) of p(z|x)."""
        m = self.w.T @ self.w + self.noise * torch.eye(self.w.shape[1], dtype=self.w.dtype)
        return torch.linalg.solve(m, self.w.T @ (x - self.mean).T).T, self.noise * torch.linalg.inv(m)

    def log_likelihood(self, x: Tensor) -> Tensor:
        """log N(x; m, W Wᵀ + s² I): (n, d) -> (n)"""
        d = self.w.shape[0]
        cov = self.w @ self.w.T + self.noise * torch.eye(d, dtype=self.w.dtype)
        away = x - self.mean
        square = (away * torch.linalg.solve(cov, away.T).T).sum(1)
        return -(square + torch.logdet(cov) + d * math.log(2 * math.pi)) / 2

    def elbo(self, x: Tensor, mu: Tensor, var: Tensor) -> Tensor:
        """E_q log p(x|z) − KL with q = N(mu, diag var), integrated exactly: (n, d), (n, k), (k) -> (n)"""
        d = self.w.shape[0]
        spread = (self.w.square().sum(0) * var).sum(-1)
        error = (x - self.mean - mu @ self.w.T).square().sum(1) + spread
        kl = (mu.square() + var - var.log() - 1).sum(-1) / 2
        return -error / (2 * self.noise) - d / 2 * math.log(2 * math.pi * self.noise) - kl


def fit_linear_vae(x: Tensor, k: int, noise: float | None = None, beta: float = 1.0) -> LinearVAE:
    """The optimum for rows x (n, d): W = U (Λ − β s²)₊^{1/2}; unless given, s² is the mean dropped eigenvalue."""
    mean = x.mean(0)
    values, vectors = torch.linalg.eigh((x - mean).T @ (x - mean) / len(x))
    values, vectors = values.flip(0), vectors.flip(1)
    s2 = float(values[k:].mean()) if noise is None else noise
    return LinearVAE(vectors[:, :k] * (values[:k] - beta * s2).clamp(min=0).sqrt(), mean, s2)


def reconstruction_variance(x: float, weight: float, noise: float, mean: float, variance: float, samples: int) -> float:
    """Variance of (1/L) Σ_l (x − w z_l)²/2s² with z_l ~ q = N(mean, variance): it falls as 1/L."""
    a, v = x - weight * mean, weight**2 * variance
    return (2 * v**2 + 4 * a**2 * v) / (4 * noise**2) / samples
