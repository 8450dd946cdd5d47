"""Latent-variable models: a simple p(z) and a simple p(x | z) make a complex p(x).

    marginal likelihood   p(x) = Σ_z p(x, z) = ∫ p(x | z) p(z) dz
    nonlinear model       z ~ N(0, I),  x = f(z) + √s ε        p(x) = ∫ N(x; f(z), s I) N(z; 0, I) dz: a mixture of
                                                               infinitely many round Gaussians with means f(z)
    linear model          f(z) = W z + b                       p(x) = N(b, W Wᵀ + s I)
                                                               p(z | x) = N(M⁻¹ Wᵀ (x − b), s M⁻¹),  M = WᵀW + s I
    estimates             quadrature      Σ_i w_i p(x | z_i)   z_i, w_i: Gauss-Hermite nodes and weights, for few z
                          Monte Carlo     (1/S) Σ_i p(x | z_i),  z_i ~ p(z)
                          importance      (1/S) Σ_i p(x | z_i) p(z_i) / q(z_i),  z_i ~ q; exact with one if q = p(z | x)

Errata: DLN's table of eye colours sums to 0.99, not to the printed 1.00 (Green is 0.43, not 0.44). DLD calls x a
distribution; it is the observation.

Systems: marginal-likelihood, latent-variable-model
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

Decode = Callable[[Tensor], Tensor]
"""f: points z (n, k) -> x (n, d)"""


def marginalise(joint: Tensor, axis: int) -> Tensor:
    """p(x) = Σ_z p(x, z) of a table whose axis `axis` is z.

    Systems: marginal-likelihood
    """
    return joint.sum(axis)


@dataclass(frozen=True)
class LinearGaussian:
    """W (d, k), b (d) and the variance s of the noise.

    Systems: latent-variable-model
    """

    w: Tensor
    b: Tensor
    s: Tensor

    @property
    def prior(self) -> MultivariateNormal:
        """N(0, I)"""
        k = self.w.shape[1]
        return MultivariateNormal(self.b.new_zeros(k), torch.eye(k).to(self.b))

    @property
    def marginal(self) -> MultivariateNormal:
        """N(b, W Wᵀ + s I)"""
        return MultivariateNormal(self.b, self.w @ self.w.T + self.s * torch.eye(len(self.b)).to(self.b))

    def posterior(self, x: Tensor) -> MultivariateNormal:
        """p(z | x)"""
        k = self.w.shape[1]
        m = self.w.T @ self.w + self.s * torch.eye(k).to(self.b)
        mean = torch.linalg.solve(m, self.w.T @ (x - self.b))
        return MultivariateNormal(mean, self.s * torch.linalg.inv(m))

    def decode(self, z: Tensor) -> Tensor:
        """f(z) = W z + b"""
        return z @ self.w.T + self.b


def sample_ancestrally(decode: Decode, s: float, n: int, k: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """n observations x (n, d) and their z (n, k): first z ~ N(0, I), then x ~ N(f(z), s I)."""
    z = torch.randn(n, k, generator=random, dtype=torch.float64)
    mean = decode(z)
    return mean + math.sqrt(s) * torch.randn(mean.shape, generator=random, dtype=mean.dtype), z


def log_likelihood(x: Tensor, mean: Tensor, s: float | Tensor) -> Tensor:
    """log N(x; f(z), s I) of one x (d) for every mean (n, d): (n)"""
    s = torch.as_tensor(s, dtype=x.dtype)
    return -(x - mean).square().sum(-1) / (2 * s) - len(x) / 2 * (2 * math.pi * s).log()


def log_marginal_by_quadrature(decode: Decode, s: float, x: Tensor, k: int, nodes: int = 40) -> Tensor:
    """log p(x) by Gauss-Hermite nodes on each of the k axes of z."""
    places, weights = (torch.from_numpy(a) for a in np.polynomial.hermite_e.hermegauss(nodes))
    z = torch.cartesian_prod(*[places] * k).reshape(-1, k)
    log_w = torch.cartesian_prod(*[weights.log()] * k).reshape(-1, k).sum(1) - k / 2 * math.log(2 * math.pi)
    return (log_likelihood(x, decode(z), s) + log_w).logsumexp(0)


def log_marginal_by_sampling(decode: Decode, s: float, x: Tensor, z: Tensor) -> Tensor:
    """log (1/S) Σ_i p(x | z_i), for z (S, k) drawn from the prior."""
    return log_likelihood(x, decode(z), s).logsumexp(0) - math.log(len(z))


def log_marginal_by_importance(decode: Decode, s: float, x: Tensor, q: MultivariateNormal, z: Tensor) -> Tensor:
    """log (1/S) Σ_i p(x | z_i) p(z_i) / q(z_i), for z (S, k) drawn from q."""
    log_prior = -z.square().sum(-1) / 2 - z.shape[1] / 2 * math.log(2 * math.pi)
    return (log_likelihood(x, decode(z), s) + log_prior - q.log_prob(z)).logsumexp(0) - math.log(len(z))
