"""beta against the closed form on three seeds, and what the verdict follows."""

from __future__ import annotations

from functools import partial

import pytest

from descend.labs import beta_and_collapse
from descend.labs._evidence import judge_seed
from descend.labs.beta_and_collapse import FACTORS, VARIANCES, figure, make_world, measure

verdict = partial(judge_seed, beta_and_collapse)

SLUG = "beta-vae"


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "direction", "threshold", "rate-distortion", "disentangling", "monitor")
@pytest.mark.system("irregular-latent-space", "price")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int) -> None:
    """KL and error follow the closed form for six values of beta; a direction is active exactly where it says so."""
    numbers = measure(seed, budget=2.9)
    assert verdict(numbers) == "supported", numbers
    assert numbers["active"] == [4, 4, 3, 3, 2, 1, 0]  # λ = 0.1 is gone at β = 1: equality collapses
    assert numbers["error"][0] < 0.01 < 0.3 < numbers["error"][2]  # what the KL costs
    assert len(figure(numbers).axes) == 1
    assert verdict({**numbers, "steps": 10}) == "open"
    assert verdict({**numbers, "kl": numbers["kl"][::-1]}) == "refuted"
    assert verdict({**numbers, "active": [4] * 7}) == "refuted"
    assert verdict({**numbers, "disentangling": [1.0] * 1 + numbers["disentangling"][1:]}) == "refuted"


def test_the_world_has_the_variances_exactly() -> None:
    f, frame = make_world(0)
    covariance = f.double().T @ f.double() / len(f)
    assert (covariance.diagonal() - covariance.new_tensor(VARIANCES)).abs().max() < 1e-5
    assert (covariance - covariance.diagonal().diag()).abs().max() < 1e-5
    assert frame.shape[0] == FACTORS
