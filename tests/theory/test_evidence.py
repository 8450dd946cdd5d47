"""The evidence lower bound: three forms of one number, and what is below log p(x) by how much."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from descend.seeds import generator
from descend.theory.evidence import (
    elbo_below_evidence,
    elbo_by_definition,
    elbo_by_quadrature,
    elbo_by_reconstruction,
    estimate_elbo,
)
from descend.theory.latent_variable import LinearGaussian, log_likelihood
from tests.close import close
from tests.theory.test_latent_variable import model

pytestmark = pytest.mark.system("elbo")
DOUBLE = torch.float64
X = torch.tensor([0.3, -0.7, 1.1], dtype=DOUBLE)


def belief(seed: int, k: int = 2) -> MultivariateNormal:
    random = generator(seed)
    root = torch.randn(k, k, generator=random, dtype=DOUBLE)
    mean = torch.randn(k, generator=random, dtype=DOUBLE)
    return MultivariateNormal(mean, root @ root.T + 0.1 * torch.eye(k, dtype=DOUBLE))


@pytest.mark.system("elbo", "three-forms", "bound")
@pytest.mark.parametrize("seed", range(3))
def test_three_forms_of_one_number_below_the_evidence(seed: int) -> None:
    found, q = model(seed=seed), belief(seed + 10)
    exact = found.marginal.log_prob(X)
    bound = elbo_by_definition(found, X, q)
    close(elbo_below_evidence(found, X, q), bound)
    close(elbo_by_reconstruction(found, X, q).elbo, bound)
    assert bound < exact
    close(exact - bound, kl_divergence(q, found.posterior(X)))
    close(elbo_by_reconstruction(found, X, found.posterior(X)).elbo, exact)


@pytest.mark.system("elbo", "three-forms")
def test_the_definition_as_an_integral() -> None:
    found, q = model(k=1), belief(4, 1)
    line = torch.linspace(-20, 20, 40_001, dtype=DOUBLE)

    def log_joint(z: Tensor) -> Tensor:
        return log_likelihood(X, found.decode(z[:, None]), found.s) + found.prior.log_prob(z[:, None])

    close(elbo_by_quadrature(log_joint, lambda z: q.log_prob(z[:, None]), line), elbo_by_definition(found, X, q))


@pytest.mark.system("elbo", "monte-carlo")
def test_both_terms_from_samples_and_their_gradients() -> None:
    found, exact_q = model(), belief(7)
    mean = exact_q.mean.clone().requires_grad_()
    q = MultivariateNormal(mean, exact_q.covariance_matrix)
    exact = elbo_by_reconstruction(found, X, q)
    (slope,) = torch.autograd.grad(exact.elbo, mean, retain_graph=True)
    torch.manual_seed(0)
    many = estimate_elbo(lambda z: log_likelihood(X, found.decode(z), found.s), found.prior, q, 100_000)
    (ours,) = torch.autograd.grad(many.elbo, mean)
    scale = float(exact.elbo.detach().abs())
    assert abs(many.reconstruction - exact.reconstruction) < 0.02 * scale
    assert abs(many.kl - exact.kl) < 0.02 * scale
    assert (ours - slope).abs().max() < 0.02 * float(slope.abs().max())
    torch.manual_seed(0)
    few = estimate_elbo(lambda z: log_likelihood(X, found.decode(z), found.s), found.prior, q, 10)
    assert abs(few.elbo - exact.elbo) > abs(many.elbo - exact.elbo)


@pytest.mark.system("elbo", "misprint")
def test_the_printed_posterior_is_no_density_of_z() -> None:
    """p(x | z) as a function of z has another integral and another peak; p(z | x) ∝ p(x | z) p(z) is a density."""
    one = LinearGaussian(*(torch.tensor(v, dtype=DOUBLE) for v in ([[0.9]], [0.0], 0.4)))
    x, line = torch.tensor([1.3], dtype=DOUBLE), torch.linspace(-12, 12, 24_001, dtype=DOUBLE)
    printed = log_likelihood(x, one.decode(line[:, None]), 0.4).exp()
    right = one.posterior(x).log_prob(line[:, None]).exp()
    close(torch.trapezoid(right, line), torch.tensor(1.0, dtype=DOUBLE))
    close(torch.trapezoid(printed, line), torch.tensor(1 / 0.9, dtype=DOUBLE))
    assert abs(line[printed.argmax()] - line[right.argmax()]) > 0.4
