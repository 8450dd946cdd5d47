"""The best discriminator, the divergences that it measures, distances on a line, and a game that turns in circles."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import norm, wasserstein_distance
from torch import Tensor

from descend.losses.adversarial import discriminator_loss
from descend.ops.adversarial_game import (
    best_value,
    game_value,
    jensen_shannon,
    optimal_discriminator,
    oracle_accuracy,
    step_at_once,
    step_in_turns,
    total_variation,
    wasserstein_of_samples,
    wasserstein_on_line,
)
from tests.close import close

P, Q = (torch.tensor(v, dtype=torch.float64) for v in ([0.1, 0.4, 0.3, 0.2], [0.25, 0.25, 0.25, 0.25]))


def normal(mean: float, width: float = 1.0) -> tuple[Tensor, Tensor]:
    """Places on a line, and the mass of N(mean, width²) in each of them."""
    x = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
    p = torch.from_numpy(norm.pdf(x.numpy(), mean, width))
    return x, p / p.sum()


def distributions(n: int = 5) -> st.SearchStrategy[Tensor]:
    share = st.floats(0, 1).map(lambda v: v if v > 1e-200 else 0.0)  # half of the smallest number is 0
    weights = st.lists(share, min_size=n, max_size=n).filter(lambda v: sum(v) > 0.1)
    return weights.map(lambda v: torch.tensor(v, dtype=torch.float64) / sum(v))


@pytest.mark.system("optimal-discriminator")
@pytest.mark.system("optimal-discriminator", "oracle")
@pytest.mark.parametrize("m", [4.0, 2.0, 1.0, 0.0])
def test_accuracy_of_the_oracle_between_two_normals(m: float) -> None:
    (_, p), (_, q) = normal(0.0), normal(m)
    close(oracle_accuracy(p, q), torch.tensor(norm.cdf(m / 2)), loosen=1e3)  # the grid's error
    close(oracle_accuracy(p, q), 0.5 + total_variation(p, q) / 2)


@pytest.mark.system("optimal-discriminator")
@pytest.mark.system("optimal-discriminator", "identity")
@given(p=distributions(), q=distributions())
def test_the_value_of_the_best_is_the_divergence(p: Tensor, q: Tensor) -> None:
    best = best_value(p, q)
    close(best - 1, 2 * jensen_shannon(p, q) - math.log(4) - 1)
    a, b = 0.9 * p + 0.1 * q, 0.1 * p + 0.9 * q  # no mass is so small that 1 − D rounds to 0
    close(best_value(a, b) - 1, game_value(optimal_discriminator(a, b), a, b) - 1)
    assert -math.log(4) - 1e-12 <= best <= 1e-12


@pytest.mark.system("optimal-discriminator")
@pytest.mark.system("optimal-discriminator", "identity")
def test_the_divergence_is_scipys() -> None:
    close(jensen_shannon(P, Q), torch.tensor(jensenshannon(P.numpy(), Q.numpy()) ** 2))
    one, other = torch.eye(2, dtype=torch.float64)
    close(jensen_shannon(one, other), torch.tensor(math.log(2), dtype=torch.float64))
    assert optimal_discriminator(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 0.0])).tolist() == [0.5, 1.0]


@pytest.mark.system("optimal-discriminator", "density")
def test_the_identity_holds_for_densities() -> None:
    (_, p), (_, q) = normal(0.0), normal(1.0, 0.7)
    close(best_value(p, q), 2 * jensen_shannon(p, q) - math.log(4))


@pytest.mark.system("optimal-discriminator")
@pytest.mark.system("optimal-discriminator", "optimum")
def test_ascent_on_a_grid_ends_at_the_optimum() -> None:
    """DLN-C.41: D at each of 41 places is a free number; ascending V ends at p/(p+q), and nothing is better."""
    x = torch.linspace(-3, 4, 41, dtype=torch.float64)
    p, q = (torch.from_numpy(norm.pdf(x.numpy(), m)) for m in (0, 1))
    p, q = p / p.sum(), q / q.sum()
    s = torch.zeros(41, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([s], max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-14)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = -game_value(s.sigmoid(), p, q)
        value.backward()
        return value

    optimizer.step(loss)
    close(s.sigmoid(), optimal_discriminator(p, q), loosen=1e5)  # as far as the ascent came
    for other in torch.rand(20, 41, dtype=torch.float64, generator=torch.Generator().manual_seed(0)):
        assert game_value(other, p, q) < game_value(optimal_discriminator(p, q), p, q)


@pytest.mark.system("optimal-discriminator")
@pytest.mark.system("optimal-discriminator", "equilibrium")
def test_equilibrium() -> None:
    d = optimal_discriminator(P, P)
    close(d, torch.full((4,), 0.5, dtype=torch.float64))
    close(game_value(d, P, P), torch.tensor(-math.log(4), dtype=torch.float64))
    close(discriminator_loss(d.logit(), d.logit()), torch.tensor(2 * math.log(2), dtype=torch.float64))


# Wasserstein


@pytest.mark.system("js-versus-wasserstein")
@pytest.mark.system("js-versus-wasserstein", "sorting")
def test_sorted_samples_against_scipy() -> None:
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 50, generator=random, dtype=torch.float64)
    close(wasserstein_of_samples(x, 2 * y + 1), torch.tensor(wasserstein_distance(x.numpy(), (2 * y + 1).numpy())))
    places = torch.randn(9, generator=random, dtype=torch.float64).sort().values
    p, q = (torch.rand(9, generator=random, dtype=torch.float64) for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    theirs = wasserstein_distance(places.numpy(), places.numpy(), p.numpy(), q.numpy())
    close(wasserstein_on_line(places, p, q), torch.tensor(theirs))
    with pytest.raises(ValueError, match="two rows of one length"):
        wasserstein_of_samples(x, y[:3])


@pytest.mark.system("js-versus-wasserstein")
@pytest.mark.system("js-versus-wasserstein", "saturation")
@pytest.mark.parametrize("theta", [0.5, 1.0, 3.0])
def test_point_masses(theta: float) -> None:
    places = torch.tensor([0.0, theta], dtype=torch.float64)
    p, q = torch.eye(2, dtype=torch.float64)
    close(jensen_shannon(p, q), torch.tensor(math.log(2), dtype=torch.float64))
    close(wasserstein_on_line(places, p, q), places[1])


@pytest.mark.system("js-versus-wasserstein")
@pytest.mark.system("js-versus-wasserstein", "dual")
def test_the_distance_is_a_supremum_over_gentle_functions() -> None:
    """E_p f − E_q f ≤ W₁ for 1-Lipschitz f, and f(x) = −∫ sign(F_p − F_q) reaches it."""
    x, p = normal(0.0)
    _, q = normal(1.5, 0.5)
    distance = wasserstein_on_line(x, p, q)
    best = torch.cat([torch.zeros(1, dtype=torch.float64), -((p - q).cumsum(0)[:-1].sign() * x.diff()).cumsum(0)])
    close((p * best).sum() - (q * best).sum(), distance)
    for f in (x.sin(), x.abs(), -x, x.clamp(-1, 1)):
        assert abs((p * f).sum() - (q * f).sum()) <= distance


@pytest.mark.system("js-versus-wasserstein")
@pytest.mark.system("js-versus-wasserstein", "gradient")
def test_only_the_distance_has_a_gradient_where_supports_are_apart() -> None:
    y = torch.tensor([3.0, 3.5, 4.0], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    (slope,) = torch.autograd.grad(wasserstein_of_samples(x, y), y)
    close(slope, torch.full((3,), 1 / 3, dtype=torch.float64))
    bins = torch.linspace(-1, 9, 101, dtype=torch.float64)
    counts = [torch.histogram(v.detach(), bins).hist / 3 for v in (x, y, y + 2)]
    close(jensen_shannon(counts[0], counts[1]), jensen_shannon(counts[0], counts[2]))


# The bilinear game


@pytest.mark.system("mode-collapse")
@pytest.mark.system("mode-collapse", "bilinear")
@pytest.mark.parametrize("eta", [0.01, 0.1, 0.5])
def test_stepping_at_once_spirals_outwards(eta: float) -> None:
    x, y = torch.tensor(0.6, dtype=torch.float64), torch.tensor(0.8, dtype=torch.float64)
    for step in range(1, 51):
        x, y = step_at_once(x, y, eta)
        close(torch.hypot(x, y), torch.tensor((1 + eta**2) ** (step / 2), dtype=torch.float64))


@pytest.mark.system("mode-collapse")
@pytest.mark.system("mode-collapse", "bilinear")
def test_taking_turns_goes_round_without_end() -> None:
    x, y = torch.tensor(1.0, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    invariant = lambda x, y: x**2 + y**2 - 0.3 * x * y
    start, radii = invariant(x, y), []
    for _ in range(500):
        x, y = step_in_turns(x, y, 0.3)
        close(invariant(x, y), start)
        radii.append(float(torch.hypot(x, y)))
    assert 0.8 < min(radii) < max(radii) < 1.3
