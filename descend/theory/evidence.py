"""The evidence lower bound (ELBO): log p(x) is at least what any q(z) makes of it, by Jensen's inequality.

    definition        ELBO = ∫ q(z) log (p(x, z) / q(z)) dz = E_q log p(x, z) + H(q)     ≤ log ∫ q p(x, z)/q = log p(x)
    below evidence    ELBO = log p(x) − KL(q ‖ p(z | x))                                 tight iff q = p(z | x)
    reconstruction    ELBO = E_q log p(x | z) − KL(q ‖ p(z))                             fit minus regularisation

The three are the same number. Exact here for linear Gaussian models; by quadrature on a line, or from samples of q, for
any model. Erratum: DLN prints the posterior several times as p(x | z, φ); it is p(z | x, φ), and once "joint p(x | z)"
for p(x, z).

Systems: elbo
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal, kl_divergence

from descend.theory.latent_variable import LinearGaussian, log_likelihood

LogDensity = Callable[[Tensor], Tensor]


class Bound(NamedTuple):
    """ELBO = reconstruction − kl."""

    reconstruction: Tensor
    kl: Tensor

    @property
    def elbo(self) -> Tensor:
        return self.reconstruction - self.kl


def expect_log_likelihood(model: LinearGaussian, x: Tensor, q: MultivariateNormal) -> Tensor:
    """E_q log p(x | z) = log N(x; W m + b, s I) − tr(W S Wᵀ) / 2s, for q = N(m, S)."""
    spread = (model.w @ q.covariance_matrix @ model.w.T).trace()
    return log_likelihood(x, model.decode(q.mean[None]), model.s)[0] - spread / (2 * model.s)


def elbo_by_definition(model: LinearGaussian, x: Tensor, q: MultivariateNormal) -> Tensor:
    """E_q log p(x | z) + E_q log p(z) + H(q)"""
    log_prior = model.prior.log_prob(q.mean) - q.covariance_matrix.trace() / 2
    return expect_log_likelihood(model, x, q) + log_prior + q.entropy()


def elbo_below_evidence(model: LinearGaussian, x: Tensor, q: MultivariateNormal) -> Tensor:
    """log p(x) − KL(q ‖ p(z | x))"""
    return model.marginal.log_prob(x) - kl_divergence(q, model.posterior(x))


def elbo_by_reconstruction(model: LinearGaussian, x: Tensor, q: MultivariateNormal) -> Bound:
    """E_q log p(x | z) and KL(q ‖ p(z)), whose difference is the bound."""
    return Bound(expect_log_likelihood(model, x, q), kl_divergence(q, model.prior))


def elbo_by_quadrature(log_joint: LogDensity, log_q: LogDensity, line: Tensor) -> Tensor:
    """∫ q (log p(x, z) − log q) dz along a line of numbers z (n), for any model with one latent number."""
    log_density = log_q(line)
    return torch.trapezoid(log_density.exp() * (log_joint(line) - log_density), line)


def estimate_elbo(log_likelihood: LogDensity, prior: Distribution, q: Distribution, samples: int) -> Bound:
    """Both terms from S samples z (S, k) of q, for any model; gradients reach q through rsample."""
    z = q.rsample(torch.Size([samples]))
    return Bound(log_likelihood(z).mean(0), (q.log_prob(z) - prior.log_prob(z)).mean(0))
