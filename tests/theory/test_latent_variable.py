"""Latent-variable models: sums, integrals, and three estimates of them, against closed forms and scipy."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm
from torch import Tensor
from torch.distributions import MultivariateNormal

from descend.data.toys.mixture import Mixture
from descend.ops.math.probability import broken_pmf
from descend.seeds import generator
from descend.theory.latent_variable import (
    LinearGaussian,
    log_likelihood,
    log_marginal_by_importance,
    log_marginal_by_quadrature,
    log_marginal_by_sampling,
    marginalise,
    sample_ancestrally,
)
from tests.close import close

DOUBLE = torch.float64
TABLE = torch.tensor([[0.1, 0.2, 0.1], [0.3, 0.1, 0.2]], dtype=DOUBLE)


def model(d: int = 3, k: int = 2, seed: int = 0) -> LinearGaussian:
    random = generator(seed)
    w, b = torch.randn(d, k, generator=random, dtype=DOUBLE), torch.randn(d, generator=random, dtype=DOUBLE)
    return LinearGaussian(w, b, torch.tensor(0.4, dtype=DOUBLE))


@pytest.mark.system("marginal-likelihood")
@pytest.mark.system("marginal-likelihood", "table")
def test_tables_are_summed_along_either_axis() -> None:
    close(marginalise(TABLE, 1), torch.tensor([0.4, 0.6], dtype=DOUBLE))
    close(marginalise(TABLE, 0), torch.tensor([0.4, 0.3, 0.3], dtype=DOUBLE))
    assert broken_pmf(marginalise(TABLE, 0)) == ()


@pytest.mark.system("marginal-likelihood", "erratum")
def test_the_table_of_eye_colours_is_no_distribution() -> None:
    """Printed total 1.00; the cells sum to 0.99, so the marginal is refused as a distribution."""
    green = torch.tensor([0.01, 0.01, 0.08, 0.06, 0.07, 0.08, 0.06, 0.06], dtype=DOUBLE)
    close(marginalise(green, 0), torch.tensor(0.43, dtype=DOUBLE))
    assert broken_pmf(torch.tensor([0.19, 0.37, 0.43], dtype=DOUBLE)) == ("sum",)


@pytest.mark.system("marginal-likelihood", "integral")
def test_integrals_and_sums_over_the_latent() -> None:
    """p(x) = ∫ p(x|z) p(z) dz by scipy's quadrature, ours and in closed form; a mixture is the sum over k."""
    one, x = LinearGaussian(*(torch.tensor(v, dtype=DOUBLE) for v in ([[0.9]], [0.0], 0.4))), 1.3
    direct = quad(lambda z: norm.pdf(x, 0.9 * z, math.sqrt(0.4)) * norm.pdf(z), -12, 12)[0]
    at = torch.tensor([x], dtype=DOUBLE)
    close(one.marginal.log_prob(at), torch.tensor(math.log(direct), dtype=DOUBLE))
    close(log_marginal_by_quadrature(one.decode, 0.4, at, 1), torch.tensor(math.log(direct), dtype=DOUBLE))
    pi, mu, sigma = (torch.tensor(v, dtype=DOUBLE) for v in ([0.3, 0.7], [[-1.0], [2.0]], [0.7, 1.2]))
    joint = Mixture(pi, mu, sigma).log_joint(torch.tensor([[0.4]], dtype=DOUBLE)).exp()
    close(marginalise(joint, 1).log(), Mixture(pi, mu, sigma).log_prob(torch.tensor([[0.4]], dtype=DOUBLE)))


@pytest.mark.system("latent-variable-model")
@pytest.mark.system("latent-variable-model", "linear", "ancestral")
def test_the_linear_model_is_a_gaussian() -> None:
    found = model()
    covariance = found.w @ found.w.T + 0.4 * torch.eye(3, dtype=DOUBLE)
    x, z = sample_ancestrally(found.decode, 0.4, 100_000, 2, generator(1))
    close(
        found.marginal.log_prob(x[:5]),
        torch.from_numpy(multivariate_normal(found.b.numpy(), covariance.numpy()).logpdf(x[:5].numpy())),
    )
    assert (x.mean(0) - found.b).abs().max() < 0.03
    assert (torch.cov(x.T) - covariance).abs().max() < 0.05 * float(covariance.abs().max())
    assert z.shape == (100_000, 2)
    assert torch.equal(x, sample_ancestrally(found.decode, 0.4, 100_000, 2, generator(1))[0])


@pytest.mark.system("latent-variable-model", "posterior")
def test_the_posterior_is_bayes_rule() -> None:
    found = model(k=1)
    x = torch.tensor([0.3, -0.7, 1.1], dtype=DOUBLE)
    line = torch.linspace(-8, 8, 8001, dtype=DOUBLE)
    joint = (log_likelihood(x, found.decode(line[:, None]), 0.4) + found.prior.log_prob(line[:, None])).exp()
    posterior = joint / torch.trapezoid(joint, line)
    close(found.posterior(x).log_prob(line[3000:5000, None]).exp(), posterior[3000:5000])


@pytest.mark.system("latent-variable-model", "estimates")
def test_three_estimates_of_the_marginal() -> None:
    found, x = model(), torch.tensor([0.3, -0.7, 1.1], dtype=DOUBLE)
    exact = found.marginal.log_prob(x)
    close(log_marginal_by_quadrature(found.decode, 0.4, x, 2, nodes=160), exact)
    prior = torch.randn(200_000, 2, generator=generator(3), dtype=DOUBLE)
    assert abs(log_marginal_by_sampling(found.decode, 0.4, x, prior) - exact) < 0.03
    posterior = found.posterior(x)
    torch.manual_seed(0)
    one = posterior.sample(torch.Size([1]))
    close(log_marginal_by_importance(found.decode, 0.4, x, posterior, one), exact)
    wider = MultivariateNormal(posterior.mean, 2 * posterior.covariance_matrix)
    torch.manual_seed(0)
    many = log_marginal_by_importance(found.decode, 0.4, x, wider, wider.sample(torch.Size([20_000])))
    assert abs(many - exact) < 0.02


@pytest.mark.system("latent-variable-model", "nonlinear", "ancestral")
def test_a_network_makes_a_density_that_is_no_gaussian() -> None:
    """f: R -> R, a small network. The density integrates to 1; histogram of samples; two modes."""

    def decode(z: Tensor) -> Tensor:
        return 2 * torch.tanh(3 * z)

    line = torch.linspace(-4, 4, 801, dtype=DOUBLE)
    p = torch.stack([log_marginal_by_quadrature(decode, 0.05, x[None], 1, nodes=80) for x in line]).exp()
    assert abs(float(torch.trapezoid(p, line)) - 1) < 1e-6
    x, _ = sample_ancestrally(decode, 0.05, 50_000, 1, generator(5))
    shares = torch.histc(x, 8, -4, 4) / len(x)
    expected = torch.stack([torch.trapezoid(p[i : i + 101], line[i : i + 101]) for i in range(0, 800, 100)])
    assert (shares - expected).abs().max() < 0.01
    assert p[400] < p[200] / 2
    assert p[400] < p[600] / 2
