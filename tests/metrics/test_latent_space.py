"""Regularity of a latent space, on cases whose answer is known."""

from __future__ import annotations

import pytest
import torch

from descend.metrics.latent_space import active_units, nearest_distance, prior_coverage, roughness, walk_evenness
from tests.close import close


@pytest.mark.system("beta-vae", "monitor")
def test_active_units() -> None:
    kl = torch.tensor([[0.5, 0.0, 0.011], [0.3, 0.001, 0.011]])
    assert active_units(kl).tolist() == [True, False, True]


@pytest.mark.system("irregular-latent-space", "completeness")
def test_coverage_of_the_prior() -> None:
    """One posterior that is the prior covers 95.4% at two standard deviations; points cover nothing."""
    z = torch.randn(20_000, 1, generator=torch.Generator().manual_seed(0))
    assert abs(prior_coverage(z, torch.zeros(1, 1), torch.zeros(1, 1)) - 0.9545) < 0.005
    assert prior_coverage(z, torch.zeros(50, 1), torch.full((50, 1), -30.0)) < 1e-3
    two = prior_coverage(z, torch.tensor([[-1.0], [1.0]]), torch.full((2, 1), -2 * 0.6931), reach=2.0)
    assert abs(two - 0.9545) < 0.005  # ±1 with σ = ½: −2..2


@pytest.mark.system("irregular-latent-space", "continuity")
def test_roughness_of_a_linear_decoder() -> None:
    z, step = torch.randn(2, 500, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    close(roughness(lambda z: 3 * z, z, step), torch.tensor(3.0, dtype=torch.float64))
    assert roughness(lambda z: (20 * z).sin() * 3, z, step / 100) > 10


@pytest.mark.system("irregular-latent-space", "continuity")
def test_even_and_uneven_walks() -> None:
    line = torch.linspace(0, 1, 6, dtype=torch.float64)[:, None]
    close(walk_evenness(line), torch.tensor(1.0, dtype=torch.float64))
    assert walk_evenness((line > 0.5).double()) == 5  # one jump in five steps


def test_nearest() -> None:
    made, real = torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 1.0], [3.0, 4.0]])
    close(nearest_distance(made, real), torch.tensor([1.0, 0.0]))
