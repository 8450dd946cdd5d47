"""Closed forms of discretised Langevin dynamics against chains."""

from __future__ import annotations

import math

import pytest
import torch

from descend.sampling.langevin import langevin, langevin_by_delta
from descend.seeds import generator
from descend.theory.langevin import (
    divergence_gradient,
    likelihood_gradient,
    second_moment,
    stationary_variance,
    stationary_variance_by_delta,
)

pytestmark = pytest.mark.system("langevin-sampler")
CHAINS = 40_000


def noises(steps: int, n: int = CHAINS, seed: int = 0) -> list[torch.Tensor]:
    return list(torch.randn(steps, n, 1, generator=generator(seed)))


@pytest.mark.system("langevin-sampler", "biased-variance")
@pytest.mark.parametrize(("eta", "v"), [(0.5, 1.0), (0.1, 1.0), (0.3, 0.5)])
def test_chains_are_too_wide_by_what_is_predicted(eta: float, v: float) -> None:
    start = torch.zeros(CHAINS, 1)
    steps = math.ceil(6 * v / eta)
    x = langevin(lambda x: -x / v, start, noises(steps), eta)
    expected = stationary_variance(eta, v)
    assert abs(float(x.var()) - second_moment(0.0, eta, steps, v)) < 0.03 * expected
    assert abs(second_moment(0.0, eta, 1000, v) - expected) < 1e-9
    assert expected > v


@pytest.mark.system("langevin-sampler", "biased-variance")
def test_the_other_convention() -> None:
    x = langevin_by_delta(lambda x: -x, torch.zeros(CHAINS, 1), noises(12), 1.0)
    assert abs(float(x.var()) - stationary_variance_by_delta(1.0)) < 0.04
    assert stationary_variance_by_delta(1.0) == 1 / (1 - 1 / 4)
    assert stationary_variance(2.0) == math.inf, "the chain diverges"


@pytest.mark.system("contrastive-divergence")
@pytest.mark.system("contrastive-divergence", "bias")
@pytest.mark.parametrize("k", [1, 5, 50])
def test_cd_k_follows_another_gradient(k: int) -> None:
    """E = θ y²/2, data N(0, 1), θ = 2: the mean over many chains is the closed form; not the likelihood's gradient."""
    theta, eta = 2.0, 0.1
    data = torch.randn(CHAINS, 1, generator=generator(9))
    y = langevin(lambda y: -theta * y, data, noises(k, seed=1), eta)
    found = float(-data.square().mean() / 2 + y.square().mean() / 2)
    expected = divergence_gradient(theta, 1.0, eta, k)
    assert abs(found - expected) < 0.015
    true = likelihood_gradient(theta, 1.0)
    assert true < expected < 0
    assert abs(expected - true) > 0.02
