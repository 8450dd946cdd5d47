"""Fits of scaling laws: planted constants, scipy's answers, coverage, and what they warn of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import linregress

from descend.errors import Mistake
from descend.theory.scaling_fit import (
    bootstrap,
    find_pitfalls,
    fit_additive,
    fit_floor,
    fit_huber,
    fit_power_law,
    fit_unified,
    hold_out,
    interval,
    measure_bend,
)
from descend.theory.scaling_intervals import by_bootstrap, by_delta, orders_until, relative_error, vary_exponent
from descend.theory.scaling_laws import HOFFMANN, KAPLAN_JOINED, KAPLAN_N, PowerLaw, UnifiedLaw
from tests.close import close

SIZES = [1e7, 3e7, 1e8, 3e8, 1e9, 3e9]
"""Of VOM 14.9.3."""
FLOORED = PowerLaw(1e5, 0.3, 1.5)


def measure(law: PowerLaw, noise: float, seed: int, sizes: list[float] | None = None) -> list[float]:
    random = np.random.default_rng(seed)
    return [law(x) * math.exp(noise * random.standard_normal()) for x in sizes or SIZES]


@pytest.mark.system("fitting-scaling-laws", "least-squares")
@pytest.mark.system("fitting-scaling-laws")
@pytest.mark.system("scaling-law-sweep")
def test_least_squares_are_scipys() -> None:
    losses = measure(KAPLAN_N, 0.02, 1)
    ours, theirs = fit_power_law(SIZES, losses), linregress(np.log(SIZES), np.log(losses))
    close([ours.law.alpha, math.log(ours.law.prefactor)], [-theirs.slope, theirs.intercept])
    close([ours.alpha_error, math.sqrt(ours.covariance[0, 0])], [theirs.stderr, theirs.intercept_stderr])
    close(ours.r_squared, theirs.rvalue**2)
    exact = fit_power_law(SIZES, measure(KAPLAN_N, 0.0, 1))
    close(exact.law.alpha, 0.076)
    close(exact.law.scale / 8.8e13, 1.0)


@pytest.mark.system("fitting-scaling-laws", "huber")
def test_a_bad_run_does_not_tilt_the_robust_line() -> None:
    losses = measure(KAPLAN_N, 0.002, 2)
    losses[4] *= 1.2
    u, v = np.log(SIZES) - math.log(1e8), np.log(losses)
    theirs = least_squares(
        lambda p: p[0] - p[1] * u - v, [v.mean(), 0.1], loss="huber", f_scale=0.01, xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    close(fit_huber(SIZES, losses).law.alpha, theirs.x[1])
    off = [abs(fit(SIZES, losses).law.alpha - 0.076) for fit in (fit_huber, fit_power_law)]
    assert off[0] < 0.3 * off[1]


@pytest.mark.system("fitting-scaling-laws", "bootstrap")
def test_intervals_cover_as_often_as_they_say() -> None:
    """95% of sweeps of six runs; 200 sweeps, so within 4 standard errors of it."""
    hit = 0
    for seed in range(200):
        fit = fit_power_law(SIZES, measure(KAPLAN_N, 0.02, seed))
        low, high = interval([law.alpha for law in bootstrap(fit, fit_power_law, 100, seed)])
        hit += low <= 0.076 <= high
    assert abs(hit / 200 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 200)


@pytest.mark.system("fitting-scaling-laws", "hold-out")
@pytest.mark.system("scaling-law-sweep")
def test_the_largest_runs_are_held_out() -> None:
    close(hold_out(SIZES, measure(KAPLAN_N, 0.0, 0), fit_power_law, 2), [0.0, 0.0])
    assert max(map(abs, hold_out(SIZES, measure(KAPLAN_N, 0.01, 3), fit_power_law, 2))) < 0.05


@pytest.mark.system("irreducible-loss", "with-and-without", "recovered")
@pytest.mark.system("fitting-scaling-laws", "floor-bias")
def test_a_floor_that_is_not_fitted_makes_the_exponent_small() -> None:
    sizes = np.geomspace(1e4, 1e7, 8).tolist()
    losses = measure(FLOORED, 0.002, 4, sizes)
    without, with_floor = fit_power_law(sizes, losses), fit_floor(sizes, losses)
    assert without.law.alpha < 0.5 * 0.3
    laws = bootstrap(with_floor, fit_floor, 100)
    for name, right in (("floor", 1.5), ("alpha", 0.3)):
        low, high = interval([getattr(law, name) for law in laws])
        assert low <= right <= high
        assert high - low < right
    bend, chance = measure_bend(sizes, losses)
    assert bend > 0
    assert chance < 1e-3
    assert any("near a floor" in said for said in find_pitfalls(sizes, losses))


def test_a_floor_is_not_found_where_there_is_none() -> None:
    fit = fit_floor(SIZES, [KAPLAN_N(x) for x in SIZES])
    assert fit.law.floor < 0.02
    close(fit.law(1e9), KAPLAN_N(1e9))


@pytest.mark.system("fitting-scaling-laws", "pitfalls")
@pytest.mark.system("scaling-prediction-intervals", "beyond-ten")
@pytest.mark.parametrize(
    ("sizes", "factors", "at", "word"),
    [
        (SIZES[:4], [1, 0.98, 0.96, 0.95], 0.0, "below two decades"),
        (SIZES, [1] * 6, 4e10, "beyond 10x"),
        (SIZES, [1, 1, 1, 1.2, 1, 1], 0.0, "not falling"),
        (SIZES, [1.1, 1.04, 1, 1, 1, 1], 0.0, "near a floor, or small runs undertrained"),
        (SIZES, [1, 1, 1, 1, 0.97, 0.9], 0.0, "steeper with size"),
        (SIZES, [1, 1, 1, 1, 1, 0.85], 0.0, "hold-out"),
    ],
)
def test_each_pitfall_is_named(sizes: list[float], factors: list[float], at: float, word: str) -> None:
    losses = [loss * factor for loss, factor in zip(measure(KAPLAN_N, 0.001, 5, sizes), factors, strict=True)]
    assert any(said.startswith(word) for said in find_pitfalls(sizes, losses, at))


def test_a_clean_sweep_has_no_pitfalls() -> None:
    assert not find_pitfalls(SIZES, measure(KAPLAN_N, 0.001, 5), at=3e10)


@pytest.mark.parametrize(
    ("sizes", "losses", "said"),
    [
        ([1e6], [2.0], "1 sizes: this fit needs at least 2"),
        ([1e6, 1e7], [2.0], "2 sizes and 1 losses"),
        ([1e6, 1e7], [2.0, math.nan], "leave out runs that diverged"),
        ([1e6, 1e7], [2.0, 3.0], "do not fall with size"),
    ],
)
def test_what_is_no_sweep_is_refused(sizes: list[float], losses: list[float], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        fit_power_law(sizes, losses)


GRID = [(n, d) for n in np.geomspace(1e6, 1e10, 6) for d in np.geomspace(1e8, 1e11, 6)]


@pytest.mark.system("unified-scaling-law", "fit")
@pytest.mark.system("unified-scaling-law")
def test_all_four_constants_come_back() -> None:
    start = UnifiedLaw(1e13, 1e13, 0.1, 0.1)
    exact = fit_unified([(n, d, KAPLAN_JOINED(n, d)) for n, d in GRID], start)
    close([exact.n_alpha, exact.d_alpha], [0.076, 0.095])
    close([exact.n_scale / 8.8e13, exact.d_scale / 5.4e13], [1.0, 1.0])
    random = np.random.default_rng(0)
    noisy = fit_unified(
        [(n, d, KAPLAN_JOINED(n, d) * math.exp(0.005 * random.standard_normal())) for n, d in GRID], start
    )
    assert noisy.n_alpha == pytest.approx(0.076, abs=0.005)
    assert noisy.d_alpha == pytest.approx(0.095, abs=0.01)


@pytest.mark.system("chinchilla-allocation", "parametric-fit")
def test_the_additive_law_is_fitted_to_runs() -> None:
    found = fit_additive([(n, d, HOFFMANN(n, d)) for n, d in GRID])
    close([found.floor, found.alpha, found.beta], [1.69, 0.34, 0.28])
    close([found.a / 406.4, found.b / 410.7], [1.0, 1.0])


@pytest.mark.system("scaling-prediction-intervals", "both-methods")
@pytest.mark.system("scaling-prediction-intervals")
def test_delta_method_and_bootstrap_agree() -> None:
    sizes = np.geomspace(1e7, 1e9, 30).tolist()
    fit = fit_power_law(sizes, measure(KAPLAN_N, 0.005, 6, sizes))
    at = 1e10
    delta, drawn = by_delta(fit, at), by_bootstrap(bootstrap(fit, fit_power_law, 2000), at)
    assert [math.log(a / fit.law(at)) for a in drawn] == pytest.approx(
        [math.log(a / fit.law(at)) for a in delta], rel=0.1
    )
    wide = by_delta(fit, at, run=True)
    assert wide[0] < delta[0] < fit.law(at) < delta[1] < wide[1]


@pytest.mark.system("scaling-prediction-intervals", "exponent", "erratum")
def test_an_interval_by_hand() -> None:
    low, middle, high = vary_exponent(PowerLaw(8.8e13, 0.08), 0.01, 1e12)
    assert [round(v, 2) for v in (low, middle, high)] == [1.37, 1.43, 1.50]
    close(high / middle - 1, relative_error(0.01, 88.0))
    assert relative_error(0.01, 100) < 0.05 < 0.20
    assert orders_until(0.2, 0.01) == pytest.approx(7.92, abs=0.01)


@pytest.mark.system("scaling-prediction-intervals", "broken-law")
def test_a_law_that_breaks_is_missed_by_more_the_further_one_looks() -> None:
    sizes = np.geomspace(1e4, 1e6, 6).tolist()
    bent = lambda x: KAPLAN_N(x) if x < 1e6 else KAPLAN_N(1e6) * (x / 1e6) ** -0.02  # the exponent changes at 1e6
    for truth in (FLOORED, bent):
        law = fit_power_law(sizes, [truth(x) for x in sizes]).law
        errors = [abs(law(x) / truth(x) - 1) for x in (1e7, 1e8, 1e9)]
        assert errors == sorted(errors)
        assert errors[-1] > 2 * errors[0] > 0.0
