"""A plateau lowers the rate of a run, and a resumed run is lowered at the same steps, to the bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from descend.engine.fit import fit
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.kinds.recipe import Recipe
from descend.optim.schedules import Constant, Plateau, Watch
from tests.engine.small import small, train, training, weights

SLUG = "plateau-decay-on-map"


def watched(folder: Path, **changes: object) -> Recipe:
    """The small run, watching what soon gets worse (a loss that is to grow), with a plateau of two evaluations."""
    recipe = small(folder, watch="max loss", eval_every=2, **changes)
    return replace(recipe, schedule=Plateau(factor=0.5, patience=2, around=Constant(warmup=3)))


def rates(run: Run) -> list[float]:
    return [line["lr"] for line in run.lines() if "lr" in line]


@pytest.mark.system("plateau-decay-on-map", "in-a-run")
@pytest.mark.system(SLUG)
def test_the_rate_falls_when_the_score_stops_improving(tmp_path: Path) -> None:
    run = train(watched(tmp_path, steps=14), tmp_path / "run")
    scores = [line["valid"]["loss"] for line in run.lines() if "valid" in line]
    assert scores == sorted(scores, reverse=True)  # as --watch "max loss": the first is the best
    third = 1e-2 / 3
    assert rates(run) == pytest.approx([third, 2 * third, *[1e-2] * 4, *[5e-3] * 4, *[2.5e-3] * 4])


@pytest.mark.system("plateau-decay-on-map", "in-a-run")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("kept", [1, 2, 3])
def test_resumed_is_uninterrupted(kept: int, tmp_path: Path) -> None:
    recipe = watched(tmp_path, steps=14)
    whole = train(recipe, tmp_path / "whole")
    half = Run.create(tmp_path / "half", {"name": "small"})
    stop = replace(recipe, loop=replace(recipe.loop, steps=3 * kept))
    fit(stop.build(), stop.loop, stop.schedule, half, Quiet())
    train(recipe, tmp_path / "half", resume=True)
    assert weights(half) == weights(whole)
    assert rates(half) == rates(whole)


@pytest.mark.system(SLUG)
def test_the_state_is_the_whole_memory_and_old_checkpoints_open(tmp_path: Path) -> None:
    recipe = watched(tmp_path)
    first = training(recipe)
    first.step, first.watch = 4, Watch(1.5, 1, 0.5)
    state = first.state_dict()
    second = training(recipe)
    second.load_state_dict(state)
    assert second.watch == Watch(1.5, 1, 0.5)
    second.judge(1.0, higher=True)
    assert second.watch == Watch(1.5, 0, 0.25)
    second.step = 5  # the evaluation at the end of a budget, between two regular ones
    second.judge(9.0, higher=True)
    assert second.watch == Watch(1.5, 0, 0.25)
    del state["watch"]
    second.load_state_dict(state)
    assert second.watch == Watch()
