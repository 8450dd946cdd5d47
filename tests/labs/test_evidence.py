from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import bootstrap

from descend.labs._evidence import (
    Above,
    AtLeast,
    AtMost,
    Below,
    Prediction,
    Within,
    bootstrap_interval,
    conclude,
    find_effects,
    judge,
    judge_effects,
    judge_seed,
    weigh,
)
from tests.close import close


def test_the_interval_is_that_of_scipy() -> None:
    values = np.random.default_rng(3).normal(2, 1, 40)
    theirs = bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=0).confidence_interval
    np.testing.assert_allclose(bootstrap_interval(list(values)), (theirs.low, theirs.high), atol=0.02)  # two samplings


def test_three_seeds_span_the_interval_and_five_resample_all_ways() -> None:
    assert bootstrap_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    means = sorted(np.mean(pick) for pick in np.array(np.meshgrid(*[[0.0, 1, 2, 3, 10]] * 5)).reshape(5, -1).T)
    close(bootstrap_interval([0.0, 1, 2, 3, 10]), (means[int(0.025 * 3124)], means[math.ceil(0.975 * 3124)]))


def test_it_covers_the_mean_less_often_with_few_seeds() -> None:
    """What the docstring warns of: about 75% with three, nearly 95% with forty."""
    random = np.random.default_rng(0)

    def cover(n: int) -> float:
        drawn = (bootstrap_interval(list(random.normal(0, 1, n))) for _ in range(300))
        return float(np.mean([low <= 0 <= high for low, high in drawn]))

    assert 0.65 < cover(3) < 0.85
    assert 0.9 < cover(40) < 0.98


@pytest.mark.parametrize(
    ("prediction", "values", "verdict"),
    [
        (AtLeast("x", 2), [2, 2, 3], "supported"),
        (Above("x", 2), [2, 2, 3], "open"),
        (Above("x", 2), [2, 2, 2], "refuted"),
        (AtLeast("x", 2), [1, 2, 3], "open"),
        (AtLeast("x", 2), [1, 1, 1.9], "refuted"),
        (AtLeast("x", 2, refuted=-2), [1, 1, 1.9], "open"),
        (AtLeast("x", 2, refuted=-2), [-2, -3, -2], "refuted"),
        (AtMost("x", 2), [2, 2, 1], "supported"),
        (Below("x", 2), [2, 2, 2], "refuted"),
        (AtMost("x", 2, refuted=5), [3, 4, 3], "open"),
        (AtMost("x", 2, refuted=5), [5, 6, 7], "refuted"),
        (Within("x", 1, 2), [1, 1.5, 2], "supported"),
        (Within("x", 1, 2), [0, 1.5, 2], "open"),
        (Within("x", 1, 2), [0, 1.5, 3], "open"),
        (Within("x", 1, 2), [0, 0, 0.5], "refuted"),
        (Within("x", 1, 2), [3, 4, 5], "refuted"),
        (AtLeast("x", 2), [3, 3], "open"),
        (AtLeast("x", 2), [3, 3, math.nan], "open"),
        (AtLeast("x", 0.1), [0.1] * 5, "supported"),
        (AtLeast("x", 2), [1.9, 4, 4, 4, 4], "supported"),
    ],
)
def test_verdicts(prediction: Prediction, values: list[float], verdict: str) -> None:
    assert judge(prediction, values) == verdict


def test_seeds_are_counted() -> None:
    (judged,) = judge_effects([AtLeast("x", 2)], [{"x": value} for value in (1.9, 4.0, 4.0, 4.0, None)])
    assert (judged.held, judged.count(), judged.verdict) == (3, "3 of 5 seeds", "open")
    assert math.isnan(judged.mean)


def test_all_predictions_count_and_controls_come_first() -> None:
    good, bad, unsure = (
        judge_effects([AtLeast("x", 2)], [{"x": value} for value in values])
        for values in ([3.0] * 3, [1.0] * 3, [1.0, 3.0, 3.0])
    )
    assert conclude([*good, *good]) == "supported"
    assert conclude([*good, *unsure]) == "open"
    assert conclude([*good, *unsure, *bad]) == "refuted"
    assert conclude(bad, good) == "refuted"
    assert conclude(bad, unsure) == conclude(good, bad) == conclude([]) == "open"


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    return {"gain": numbers["gain"], "learned": numbers["accuracy"]}


def test_a_lab_is_weighed() -> None:
    lab = SimpleNamespace(
        PREDICTIONS=(AtLeast("gain", 2.0),),
        CONTROLS=(AtLeast("learned", 0.9),),
        PRINTED_PREDICTIONS=(AtLeast("gain", 10.0),),
        effects=effects,
        needs=lambda numbers: 40.0 if numbers["steps"] < 5 else 0.0,
    )
    seen = {"gain": 3.0, "accuracy": 1.0, "steps": 9}
    assert judge_seed(lab, seen) == "supported"
    assert judge_seed(lab, {**seen, "gain": 1.0}) == "refuted"
    assert judge_seed(lab, {**seen, "accuracy": 0.5}) == "open"
    assert judge_seed(lab, {"steps": 1}) == "open"
    assert find_effects(lab, {"steps": 1}) == {"gain": None, "learned": None}
    found = weigh(lab, [find_effects(lab, seen)] * 3)
    assert (found.verdict, found.printed_verdict, found.seeds) == ("supported", "refuted", 3)
    assert weigh(lab, [find_effects(lab, seen)] * 3, needs=40.0).verdict == "open"
    assert weigh(lab, [find_effects(lab, seen)] * 2).verdict == "open"
