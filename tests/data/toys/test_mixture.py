"""Mixture of Gaussians against the books' number, scipy's densities and its own samples."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import multivariate_normal

from descend.data.streams.arrays import generator
from descend.data.toys.mixture import Mixture, grid, ring
from tests.close import close

pytestmark = pytest.mark.system("mixture-of-gaussians")
DOUBLE = torch.float64
PAIR = Mixture(  # DLN-MoG-marginal
    torch.tensor([0.3, 0.7], dtype=DOUBLE),
    torch.tensor([[-1.0], [2.0]], dtype=DOUBLE),
    torch.tensor([0.5, 1.5], dtype=DOUBLE).sqrt(),
)
PLANE = Mixture(
    torch.tensor([0.2, 0.3, 0.5], dtype=DOUBLE),
    torch.tensor([[0.0, 1.0], [2.0, -1.0], [-1.5, 0.5]], dtype=DOUBLE),
    torch.tensor([0.4, 1.0, 0.7], dtype=DOUBLE),
)


@pytest.mark.system("mixture-of-gaussians", "density")
def test_marginal_of_the_books() -> None:
    # The recomputed value is printed to ten digits.
    close(PAIR.log_prob(torch.tensor([[0.4]], dtype=DOUBLE)).exp(), torch.tensor([0.1209737453]).double(), loosen=10)


@pytest.mark.system("mixture-of-gaussians", "density")
def test_the_density_integrates_to_one() -> None:
    x = torch.linspace(-15, 15, 6001, dtype=DOUBLE)
    close(torch.trapezoid(PAIR.log_prob(x[:, None]).exp(), x), torch.tensor(1.0, dtype=DOUBLE))


@pytest.mark.system("mixture-of-gaussians", "density", "posterior")
def test_against_scipy() -> None:
    x = torch.randn(20, 2, generator=generator(0), dtype=DOUBLE)
    joint = torch.stack(
        [
            p * torch.from_numpy(multivariate_normal(m.numpy(), float(s) ** 2).pdf(x.numpy()))
            for p, m, s in zip(PLANE.pi, PLANE.mu, PLANE.sigma, strict=True)
        ],
        dim=1,
    )
    close(PLANE.log_prob(x), joint.sum(dim=1).log())
    close(PLANE.posterior(x), joint / joint.sum(dim=1, keepdim=True))


@pytest.mark.system("mixture-of-gaussians", "stable")
def test_far_points_stay_finite() -> None:
    far = torch.tensor([[1e4, 0.0]], dtype=DOUBLE)
    assert PLANE.log_prob(far).isfinite().all()
    close(PLANE.posterior(far).sum(), torch.tensor(1.0, dtype=DOUBLE))


@pytest.mark.system("mixture-of-gaussians", "sampling")
def test_samples_have_the_shares_means_and_widths() -> None:
    x, z = PLANE.sample(20_000, generator(3))
    for k in range(3):
        mine, sigma = x[z == k], float(PLANE.sigma[k])
        share, error = len(mine) / len(x), 4 / math.sqrt(len(mine))
        assert abs(share - float(PLANE.pi[k])) < 4 * math.sqrt(0.25 / len(x))
        assert (mine.mean(dim=0) - PLANE.mu[k]).abs().max() < error * sigma
        assert (mine.std(dim=0) / sigma - 1).abs().max() < error
    assert torch.equal(PLANE.sample(5, generator(3))[0], PLANE.sample(5, generator(3))[0])


@pytest.mark.system("mixture-of-gaussians", "posterior")
def test_the_posterior_names_the_component_of_a_tight_sample() -> None:
    x, z = ring().sample(1000, generator(1))
    assert torch.equal(ring().posterior(x).argmax(dim=1), z)


def test_ring_and_grid() -> None:
    eight = ring(8, radius=2.0, sigma=0.02)
    close(eight.mu.norm(dim=1), torch.full((8,), 2.0))
    close(eight.mu[2], torch.tensor([0.0, 2.0]))
    neighbours = (eight.mu - eight.mu.roll(1, 0)).norm(dim=1)
    close(neighbours, torch.full((8,), 4 * math.sin(math.pi / 8)))
    square = grid(5, radius=4.0, sigma=0.05)
    assert square.mu.shape == (25, 2)
    assert sorted(set(square.mu.flatten().tolist())) == [-4.0, -2.0, 0.0, 2.0, 4.0]
    close(square.pi.sum(), torch.tensor(1.0))
