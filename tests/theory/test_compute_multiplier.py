"""Small runs, multipliers and crossings: exact on planted power laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_ind_from_stats

from descend.errors import Mistake
from descend.theory.compute_multiplier import (
    compare_slopes,
    compound,
    compute_for_accuracy,
    cross,
    extrapolate_accuracy,
    find_bottleneck,
    multiply_compute,
    offset_multiplier,
    plan_runs,
    predict_full_scale,
)
from descend.theory.scaling_fit import ScalingFit, fit_power_law
from descend.theory.scaling_laws import PowerLaw
from tests.close import close

OLD = PowerLaw(1e20, 0.05)
SWEEP = np.geomspace(1e15, 1e18, 8).tolist()


def fit(law: PowerLaw, seed: int, noise: float = 0.002) -> ScalingFit:
    random = np.random.default_rng(seed)
    return fit_power_law(SWEEP, [law(c) * math.exp(noise * random.standard_normal()) for c in SWEEP])


@pytest.mark.system("small-run-extrapolation", "small-runs")
@pytest.mark.system("small-run-extrapolation")
def test_three_small_runs_foretell_the_large_one() -> None:
    compute = plan_runs(1e20)
    assert compute == [1e18, 3e18, 1e19]
    low, at, high = predict_full_scale(compute, [OLD(c) for c in compute], 1e20)
    close([low, at, high], [OLD(1e20)] * 3)
    low, at, high = predict_full_scale(
        compute, [OLD(c) * f for c, f in zip(compute, (1.003, 0.997, 1.0), strict=True)], 1e20
    )
    assert low < OLD(1e20) < high


@pytest.mark.system("small-run-extrapolation", "multiplier")
def test_an_offset_is_worth_the_same_at_any_compute() -> None:
    new = PowerLaw(OLD.scale / 4, 0.05)  # needs a quarter of the compute
    for compute in (1e15, 1e21):
        close(multiply_compute(OLD, new, compute), 4.0)
    close(offset_multiplier(OLD.prefactor, new.prefactor, 0.05), 4.0)
    fits = [fit(law, seed) for seed, law in enumerate((OLD, new))]
    assert multiply_compute(fits[0].law, fits[1].law, 1e17) == pytest.approx(4.0, rel=0.15)


@pytest.mark.system("small-run-extrapolation", "crossing")
def test_curves_cross_where_their_losses_are_equal() -> None:
    steep = PowerLaw(3e16, 0.08)
    at = cross(OLD, steep)
    close(OLD(at), steep(at))
    assert steep(10 * at) < OLD(10 * at)
    assert steep(at / 10) > OLD(at / 10)
    with pytest.raises(Mistake, match="never cross"):
        cross(OLD, PowerLaw(1e19, 0.05))


@pytest.mark.system("small-run-extrapolation", "slopes")
def test_equal_slopes_are_told_from_different_ones() -> None:
    """Welch's t test from the two exponents and their errors, as scipy takes it from means and deviations."""
    one, other = fit(OLD, 1), fit(PowerLaw(1e19, 0.05), 2)
    gap, chance = compare_slopes(one, other)
    n = one.free + 1
    theirs = ttest_ind_from_stats(
        one.law.alpha, one.alpha_error * n**0.5, n, other.law.alpha, other.alpha_error * n**0.5, n, equal_var=False
    )
    close([gap, chance], [one.law.alpha - other.law.alpha, theirs.pvalue])
    false = sum(compare_slopes(fit(OLD, 2 * s), fit(OLD, 2 * s + 1))[1] < 0.05 for s in range(100))
    assert false <= 12  # 5 expected
    steep = fit(PowerLaw(1e19, 0.06), 3)
    assert compare_slopes(one, steep)[1] < 1e-3
    assert find_bottleneck({"a": steep, "b": one, "c": fit(PowerLaw(1e19, 0.06), 4)}) == "b"
    assert find_bottleneck({"a": one, "b": other}) == ""


@pytest.mark.system("small-run-extrapolation", "gains", "task")
def test_gains_multiply_and_tasks_add_up() -> None:
    close(compound([0.1, 0.1]), 0.21)
    close(compute_for_accuracy(0.7, 0.1, 0.9), 100.0)
    close(extrapolate_accuracy(0.7, 0.1, 1e18, 1e20), 0.9)
    assert extrapolate_accuracy(0.7, 0.1, 1e18, 1e25) == 1.0
    with pytest.raises(Mistake, match="above 0"):
        compute_for_accuracy(0.7, 0.0, 0.9)
