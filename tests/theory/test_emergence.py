"""Task curves and tasks of many steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import curve_fit

from descend.errors import Mistake
from descend.theory.emergence import (
    StepCurve,
    TaskCurve,
    composite,
    fit_steps,
    fit_task,
    jump,
    log_composite,
    needed_step,
)
from tests.close import close

CURVE = TaskCurve(2.4, 0.15, 0.25, 0.95)


@pytest.mark.system("task-accuracy-sigmoid", "recovered")
@pytest.mark.system("task-accuracy-sigmoid")
def test_a_planted_curve_comes_back() -> None:
    losses = np.linspace(1.8, 3.2, 12).tolist()
    found = fit_task(losses, [CURVE(x) for x in losses], 0.25, 0.95)
    close([found.knee, found.width], [2.4, 0.15])
    noisy = [CURVE(x) + 0.02 * e for x, e in zip(losses, np.random.default_rng(0).standard_normal(12), strict=True)]
    theirs, _ = curve_fit(
        lambda x, knee, width: 0.25 + 0.7 / (1 + np.exp((x - knee) / width)), losses, noisy, [2.5, 0.2]
    )
    ours = fit_task(losses, noisy, 0.25, 0.95)
    close([ours.knee, ours.width], theirs, 10)  # two searches


@pytest.mark.system("task-accuracy-sigmoid", "regimes")
def test_one_curve_has_three_regimes() -> None:
    """VOM 14.8.1: the same 10% of loss gives nothing, 20% or more, or about 1%."""
    assert [CURVE.regime(x) for x in (3.4, 2.45, 1.7)] == ["below", "steep", "saturated"]
    below, steep, saturated = (CURVE.gain(x, 0.1) for x in (3.6, 2.5, 1.7))
    assert below < 0.01
    assert steep > 0.20
    assert 0 < saturated < 0.01


@pytest.mark.parametrize("bad", [(2.0, 0.0, 0.0, 1.0), (2.0, 0.1, 0.5, 0.5), (2.0, 0.1, 0.0, 1.1)])
def test_an_impossible_curve_is_refused(bad: tuple[float, ...]) -> None:
    with pytest.raises(Mistake):
        TaskCurve(*bad)


@pytest.mark.system("composite-task-emergence", "powers")
@pytest.mark.system("composite-task-emergence")
def test_steps_multiply_and_their_logarithms_add() -> None:
    close(math.log(composite(0.6, 3)), log_composite(0.6, 3))
    close(needed_step(composite(0.37, 5), 5), 0.37)


@pytest.mark.system("composite-task-emergence", "simulated")
@pytest.mark.system("emergent-abilities")
def test_exact_match_jumps_where_the_logarithm_is_smooth() -> None:
    step = StepCurve(-9.0, 0.75)
    sizes = np.geomspace(1e3, 1e9, 61).tolist()
    p = [step(n) for n in sizes]
    whole = [composite(q, 10) for q in p]
    assert jump(sizes, whole) < 0.75 * jump(sizes, p)
    share = lambda y: max(np.diff(y)) / (max(y) - min(y))  # the largest step of 60
    assert share([log_composite(q, 10) for q in p]) < share(whole)
    assert whole[20] < 0.01 < 0.2 < p[20]
    assert jump(sizes[:10], whole[:10]) == math.inf


@pytest.mark.system("composite-task-emergence", "prediction")
def test_the_easy_task_foretells_the_hard_one() -> None:
    step = StepCurve(-9.0, 0.75)
    small = np.geomspace(1e3, 1e5, 6).tolist()
    found = fit_steps(small, [composite(step(n), 2) for n in small], 2)
    close([found.offset, found.slope], [-9.0, 0.75])
    close(composite(step(found.threshold(0.5, 5)), 5), 0.5)
    with pytest.raises(Mistake, match="fewer than two"):
        fit_steps(small, [0.0] * 6)
    with pytest.raises(Mistake, match="does not get better"):
        fit_steps(small, [0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
