"""What is told in steps keeps its share of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from descend import recipes
from descend.engine.loop import Loop
from descend.kinds.length import shorten_average, stretch, with_steps
from descend.optim.schedules import (
    Constant,
    Cosine,
    Exponential,
    Linear,
    Noam,
    Plateau,
    Polynomial,
    Step,
    WarmRestarts,
    Warmup,
)

LONG: list[Any] = [
    Constant(warmup=100),
    Cosine(warmup=100),
    Linear(warmup=200),
    Step(period=300),
    WarmRestarts(periods=(200, 400)),
    Exponential(decay=0.01),
    Warmup(100, Step(period=300)),
    Plateau(around=Cosine(warmup=100)),
]


@pytest.mark.parametrize("schedule", LONG, ids=lambda schedule: type(schedule).__name__)
def test_a_run_of_a_tenth_has_the_same_curve(schedule: Any) -> None:
    short = stretch(schedule, 0.1)
    for t in range(0, 100, 7):  # the middle of ten long steps is the middle of a short one
        long = sum(schedule(10 * t + i, 1000) for i in range(10)) / 10
        assert short(t, 100) == pytest.approx(long, abs=0.06)
    assert schedule(99, 100) != pytest.approx(short(99, 100), abs=0.06) or isinstance(schedule, Constant)


@pytest.mark.parametrize("schedule", [Noam(), Polynomial()])
def test_schedules_whose_steps_set_the_rate_are_left_alone(schedule: Any) -> None:
    assert stretch(schedule, 0.1) == schedule


def test_the_average_is_over_the_same_share_of_a_shorter_run() -> None:
    assert shorten_average(Loop(ema=0.99), 0.1).ema == pytest.approx(0.9)  # 100 steps of 1,000, 10 of 100
    assert shorten_average(Loop(ema=0.98), 0.01).ema == 0.0
    assert shorten_average(Loop(ema=0.98, raw=True), 0.01).ema == 0.5
    assert shorten_average(Loop(ema=0.99), 3).ema == 0.99
    recipe = recipes.get("mlp-wine")
    assert recipe.loop.ema > 0
    short = with_steps(recipe, recipe.loop.steps // 2)
    assert 1 / (1 - short.loop.ema) == pytest.approx(0.5 / (1 - recipe.loop.ema), rel=1e-3)


def test_a_short_run_reaches_its_rate_and_is_evaluated() -> None:
    recipe = replace(recipes.get("gpt2-pydoc"), schedule=Cosine(warmup=100))
    short = with_steps(recipe, round(0.1 * recipe.loop.steps))
    assert short.schedule.warmup == 10
    assert short.loop.steps // short.loop.eval_every >= 5
    assert short.loop.save_every <= short.loop.eval_every
    assert with_steps(recipe, 1).loop.eval_every == 1
    assert stretch(Cosine(warmup=0), 0.1).warmup == 0
    assert stretch(Cosine(warmup=3), 0.1).warmup == 1
