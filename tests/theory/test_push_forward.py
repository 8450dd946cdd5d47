"""Push-forwards against closed forms, scipy's densities and samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from descend.models.gan import GANConfig, Generator
from descend.seeds import generator
from descend.theory.push_forward import push_affine, push_log_prob, push_normal
from tests.close import close

pytestmark = pytest.mark.system("push-forward-generator")
DOUBLE = torch.float64


@pytest.mark.system("push-forward-generator", "affine")
def test_an_affine_map_of_a_gaussian_is_a_gaussian() -> None:
    random = generator(0)
    a, b, root = (torch.randn(*s, generator=random, dtype=DOUBLE) for s in ((3, 2), (3,), (2, 2)))
    mean, covariance = torch.tensor([0.5, -1.0], dtype=DOUBLE), root @ root.T
    pushed, spread = push_affine(mean, covariance, a, b)
    close(pushed, torch.stack([a[i] @ mean + b[i] for i in range(3)]))
    z = mean + torch.randn(200_000, 2, generator=random, dtype=DOUBLE) @ root.T
    x = z @ a.T + b
    assert (x.mean(0) - pushed).abs().max() < 0.03
    assert (torch.cov(x.T) - spread).abs().max() < 0.03 * float(spread.abs().max())


@pytest.mark.system("push-forward-generator", "density", "affine")
def test_the_density_of_an_invertible_map() -> None:
    """x = exp(z) of N(0.3, 0.5²) is scipy's log-normal; an affine map in the plane is scipy's Gaussian."""
    x = torch.tensor([[0.2], [1.0], [3.5]], dtype=DOUBLE)
    normal = torch.distributions.Normal(torch.tensor(0.3, dtype=DOUBLE), torch.tensor(0.5, dtype=DOUBLE))
    ours = push_log_prob(lambda z: normal.log_prob(z).sum(-1), torch.log, x)
    close(ours, torch.from_numpy(stats.lognorm(0.5, scale=math.exp(0.3)).logpdf(x[:, 0].numpy())))
    a, b = torch.tensor([[2.0, 0.5], [0.0, 1.5]], dtype=DOUBLE), torch.tensor([1.0, -1.0], dtype=DOUBLE)
    prior = torch.distributions.MultivariateNormal(torch.zeros(2, dtype=DOUBLE), torch.eye(2, dtype=DOUBLE))
    points = torch.randn(5, 2, generator=generator(1), dtype=DOUBLE)
    ours = push_log_prob(prior.log_prob, lambda p: torch.linalg.solve(a, p - b), points)
    mean, covariance = push_affine(prior.mean, prior.covariance_matrix, a, b)
    close(ours, torch.from_numpy(stats.multivariate_normal(mean.numpy(), covariance.numpy()).logpdf(points.numpy())))


@pytest.mark.system("push-forward-generator", "quantile")
@pytest.mark.parametrize("target", [stats.expon(scale=2.0), stats.beta(2, 5), stats.laplace(1.0, 0.5)])
def test_the_quantile_function_makes_the_target(target: stats.rv_continuous) -> None:
    z = torch.randn(20_000, generator=generator(2), dtype=DOUBLE)
    x = push_normal(lambda u: torch.from_numpy(np.asarray(target.ppf(u.numpy()))), z)
    assert stats.kstest(x.numpy(), target.cdf).pvalue > 0.001
    assert stats.kstest(x.numpy() * 1.05, target.cdf).pvalue < 0.001, "5% too wide is noticed"


@pytest.mark.system("push-forward-generator", "network")
def test_a_network_pushes_any_prior_to_examples_of_the_datas_shape() -> None:
    torch.manual_seed(0)
    g = Generator(GANConfig(latent=3, outputs=64, width=16, depth=2))
    for z in (torch.randn(5, 3), torch.rand(5, 3)):
        assert g(z).view(5, 8, 8).isfinite().all()
    one = g(torch.zeros(1, 3))
    assert torch.equal(one, g(torch.zeros(1, 3))), "what is random is z alone"
