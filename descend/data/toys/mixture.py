"""Mixture of Gaussians: a density whose every number is known, and so a test for anything that generates.

    p(z = k) = π_k        p(x | z = k) = N(x; μ_k, σ_k² I)        p(x) = Σ_k π_k N(x; μ_k, σ_k² I)
    p(z = k | x) = π_k N(x; μ_k, σ_k² I) / p(x)        ∇ log p(x) = Σ_k p(z = k | x) (μ_k − x) / σ_k²

    fitted to x with shares q:   N_k = Σ_n q_nk    π_k = N_k / n    μ_k = Σ_n q_nk x_n / N_k
                                 σ_k² = Σ_n q_nk ‖x_n − μ_k‖² / (d N_k)

In d dimensions log N = −‖x − μ‖² / 2σ² − d log σ − (d/2) log 2π; sums over k are taken in the log domain.
`ring` and `grid` are the two standard tests of a generator: separate modes, all equally likely.

Systems: mixture-of-gaussians
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake


@dataclass(frozen=True)
class Mixture:
    """π (k), μ (k, d), σ (k): k round Gaussians in d dimensions."""

    pi: Tensor
    mu: Tensor
    sigma: Tensor

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n points (n, d), and the component z (n) that each came from."""
        z = torch.multinomial(self.pi, n, replacement=True, generator=generator)
        noise = torch.randn(n, self.mu.shape[1], generator=generator, dtype=self.mu.dtype)
        return self.mu[z] + self.sigma[z, None] * noise, z

    def log_joint(self, x: Tensor) -> Tensor:
        """log π_k + log N(x; μ_k, σ_k² I) for points x (n, d): (n, k)."""
        d = self.mu.shape[1]
        squared = (x[:, None, :] - self.mu).square().sum(dim=-1)
        log_normal = -squared / (2 * self.sigma**2) - d * self.sigma.log() - d / 2 * math.log(2 * math.pi)
        return self.pi.log() + log_normal

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x) of each point (n)."""
        return self.log_joint(x).logsumexp(dim=1)

    def posterior(self, x: Tensor) -> Tensor:
        """p(z = k | x): which component a point came from (n, k)."""
        return self.log_joint(x).softmax(dim=1)

    def score(self, x: Tensor) -> Tensor:
        """∇ log p(x) of each point (n, d).

        Systems: score-function
        """
        weights = self.posterior(x) / self.sigma**2
        return weights @ self.mu - weights.sum(dim=1, keepdim=True) * x

    @classmethod
    def fit(cls, x: Tensor, q: Tensor) -> Mixture:
        """The likeliest mixture if x_n (n, d) belongs to component k with the share q_nk (n, k): EM's M step."""
        count = q.sum(dim=0)
        mu = q.T @ x / count[:, None]
        squared = (x[:, None, :] - mu).square().sum(dim=-1)
        variance = (q * squared).sum(dim=0) / (x.shape[1] * count)
        flat = (~(variance > 0)).nonzero().flatten().tolist()
        if flat:
            raise Mistake(f"component {flat[0]} of the mixture has shrunk to a point; use fewer, or start elsewhere")
        return cls(count / len(x), mu, variance.sqrt())


def ring(modes: int = 8, radius: float = 2.0, sigma: float = 0.02) -> Mixture:
    """Equal Gaussians on a circle, the first on the positive x-axis."""
    angle = 2 * math.pi * torch.arange(modes) / modes
    return _equal(radius * torch.stack([angle.cos(), angle.sin()], dim=1), sigma)


def grid(side: int = 5, radius: float = 4.0, sigma: float = 0.05) -> Mixture:
    """side × side equal Gaussians on the square from −radius to radius."""
    line = torch.linspace(-radius, radius, side)
    return _equal(torch.cartesian_prod(line, line), sigma)


def _equal(mu: Tensor, sigma: float) -> Mixture:
    k = len(mu)
    return Mixture(torch.full((k,), 1 / k), mu, torch.full((k,), sigma))
