"""Risk, gap, bias and variance: closed forms against simulation."""

from __future__ import annotations

import pytest
import torch

from descend.losses.risk import empirical_risk, summed_risk
from descend.theory.generalization.risk import least_squares_risks, least_squares_risks_in_place, split_error
from tests.close import close

N, D, NOISE, SETS = 20, 5, 0.7, 20_000


@pytest.fixture(scope="module")
def fits() -> tuple[torch.Tensor, ...]:
    """Inputs, errors on the sample, at the same inputs again, and the expected error on new inputs, for each set."""
    random = torch.Generator().manual_seed(0)
    scale = torch.tensor([0.3, 1.0, 2.0, 1.0, 5.0], dtype=torch.float64)
    x = torch.randn(SETS, N, D, generator=random, dtype=torch.float64) * scale
    w = torch.randn(D, generator=random, dtype=torch.float64)
    y, again = (x @ w + NOISE * torch.randn(SETS, N, generator=random, dtype=torch.float64) for _ in range(2))
    fit = torch.linalg.lstsq(x, y[..., None]).solution
    predicted = (x @ fit)[..., 0]
    population = NOISE**2 + (scale * (fit[..., 0] - w)).square().sum(-1)
    return x, (predicted - y).square(), (predicted - again).square(), population


@pytest.mark.system("population-risk-and-gap")
@pytest.mark.system("population-risk-and-gap", "closed-form")
def test_closed_forms_agree_with_simulation(fits: tuple[torch.Tensor, ...]) -> None:
    _, seen, again, population = fits
    new, place = least_squares_risks(N, D, NOISE), least_squares_risks_in_place(N, D, NOISE)
    for measured, expected in (
        (seen.mean(-1), new.empirical),
        (population, new.population),
        (again.mean(-1), place.population),
        (population - seen.mean(-1), new.gap),
        (again.mean(-1) - seen.mean(-1), 2 * NOISE**2 * D / N),
    ):
        error = float(measured.std()) / SETS**0.5
        assert abs(float(measured.mean()) - expected) < 4 * error < 0.05 * expected
    assert place.gap == pytest.approx(2 * NOISE**2 * D / N)
    assert new.gap > place.gap


def test_too_few_examples_have_no_expected_risk() -> None:
    with pytest.raises(ValueError, match="infinite"):
        least_squares_risks(6, 5, 1.0)
    with pytest.raises(ValueError, match="determine"):
        least_squares_risks_in_place(4, 5, 1.0)


@pytest.mark.system("population-risk-and-gap", "fixed", "held-out", "reductions")
def test_the_gap_of_fixed_and_of_trained_weights() -> None:
    """Fixed: 0 on average. Trained: positive. Held-out examples and a large fresh sample see the same gap."""
    random = torch.Generator().manual_seed(1)
    sets, n = 4000, 12

    def draw(n: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.randn(sets, n, 3, generator=random, dtype=torch.float64)
        return x, x.sum(-1).sin() + 0.3 * torch.randn(sets, n, generator=random, dtype=torch.float64)

    (x, y), (held_x, held_y) = draw(n), draw(n)
    fresh_x, fresh_y = (part.flatten(0, 1) for part in draw(5))
    fixed = torch.tensor([0.2, -0.1, 0.4], dtype=torch.float64)
    gap = ((fresh_x @ fixed - fresh_y).square().mean() - (x @ fixed - y).square().mean(-1)).double()
    assert abs(float(gap.mean())) < 4 * float(gap.std()) / sets**0.5
    w = torch.linalg.lstsq(x, y[..., None]).solution
    seen = ((x @ w)[..., 0] - y).square()
    held = ((held_x @ w)[..., 0] - held_y).square().mean(-1) - seen.mean(-1)
    chosen = w[:200, :, 0]
    fresh = (fresh_x @ chosen.T - fresh_y[:, None]).square().mean(0) - seen[:200].mean(-1)
    assert float(held.mean()) > 10 * float(held.std()) / sets**0.5  # positive after training
    assert abs(float(held.mean() - fresh.mean())) < 4 * float(fresh.std()) / 200**0.5
    close(summed_risk(seen[0]), n * empirical_risk(seen[0]))


@pytest.mark.system("bias-variance")
@pytest.mark.system("bias-variance", "identity", "noise")
def test_the_terms_sum_to_the_error() -> None:
    random = torch.Generator().manual_seed(0)
    predictions = torch.randn(500, 7, generator=random, dtype=torch.float64) + 0.5
    truth = torch.linspace(-1, 1, 7, dtype=torch.float64)
    parts = split_error(predictions, truth)
    close(parts.error, (predictions - truth).square().mean(0))
    noisy = split_error(predictions, truth, noise=0.5)
    answers = truth + 0.5 * torch.randn(1000, 500, 7, generator=random, dtype=torch.float64)
    measured = (predictions - answers).square().mean((0, 1))
    assert torch.allclose(noisy.error, measured, rtol=0.02)
    close(noisy.noise, torch.full((7,), 0.25, dtype=torch.float64))


@pytest.mark.system("bias-variance", "averaging")
def test_averaging_lowers_variance_and_leaves_bias() -> None:
    """Polynomials fitted to separate samples, averaged ten at a time: variance / 10, the same bias."""
    random = torch.Generator().manual_seed(0)
    at = torch.linspace(-1, 1, 9, dtype=torch.float64)
    x = 2 * torch.rand(20_000, 15, generator=random, dtype=torch.float64) - 1
    y = (3 * x).sin() + 0.3 * torch.randn(x.shape, generator=random, dtype=torch.float64)
    powers = torch.stack([x**k for k in range(3)], -1)
    w = torch.linalg.lstsq(powers, y[..., None]).solution[..., 0]
    predictions = w @ torch.stack([at**k for k in range(3)])
    one, ten = (split_error(p, (3 * at).sin()) for p in (predictions, predictions.view(2000, 10, 9).mean(1)))
    close(one.bias_squared, ten.bias_squared)
    ratio = float(one.variance.mean() / ten.variance.mean())
    assert 9 < ratio < 11
