"""The tabular recipes: they come to Q*, go on where they stopped, read files, and refuse what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from descend import recipes
from descend.engine.loop import Loop
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.kinds.tabular import Tables, TabularQ
from descend.ops.decisions.rates import StepSize
from tests.close import close
from tests.kinds.test_control import advance

SMALL = TabularQ(data=Tables(valid=5, longest=30), rate=StepSize(power=0.5), loop=Loop(steps=60, batch=16))


@pytest.mark.system("q-learning", "converges")
@pytest.mark.system("q-learning", "off-policy")
@pytest.mark.parametrize("seed", range(3))
def test_the_frozen_lake_is_learned(seed: int) -> None:
    """Random behaviour; a fifth of the recipe's steps come within 0.04 of Q*, all of them within 0.02."""
    training = advance(recipes.get("q-frozen-lake"), 1200, seed)
    scores = training.evaluate()
    assert scores["distance"] < 0.04
    assert scores["return"] > 0.55


@pytest.mark.system("q-learning", "optimal-policy")
@pytest.mark.parametrize("seed", range(3))
def test_the_cliff_is_walked_in_13_steps(seed: int) -> None:
    training = advance(recipes.get("q-cliff"), 300, seed)
    assert training.evaluate()["return"] == -13.0
    assert training.parts.facts["value of the best policy"] == -13.0


def test_micro_batches_learn_what_the_batch_does() -> None:
    whole, halves = advance(SMALL, 20), advance(replace(SMALL, loop=replace(SMALL.loop, accumulate=2)), 20)
    assert whole.parts.stream.stream.steps == halves.parts.stream.stream.steps == 320
    assert whole.parts.model.values.any()
    close(whole.parts.model.values, halves.parts.model.values)


def test_a_process_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "map.txt").write_text("S..\n.#.\n..G\n")
    recipe = replace(recipes.get("q-cliff"), data=Tables(path=str(tmp_path / "map.txt"), valid=3), gamma=0.9)
    training = advance(recipe, 150)
    scores = training.evaluate()
    assert scores["return"] == 1.0
    assert scores["distance"] < 1e-5
    shown = training.parts.exhibits()  # type: ignore[misc]
    assert [exhibit.kind for exhibit in shown] == ["curve", "heatmap", "heatmap"]
    assert shown[1].content["texts"][0] == ["↓→", "→", "↓"]
    assert recipe.files() == {"map.txt": tmp_path / "map.txt"}


def test_exploring_starts_are_for_training_only() -> None:
    own, anywhere = (replace(SMALL, data=replace(SMALL.data, start=start)).build() for start in ("own", "anywhere"))
    begun = [len(set(parts.stream.stream.state.tolist())) for parts in (own, anywhere)]
    assert begun[0] == 1 < begun[1]
    task = anywhere.task
    assert torch.equal(task.play.process.start, own.task.play.process.start)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (lambda: replace(SMALL, data=Tables(env="CartPole-v1")), "--data.env CartPole-v1: it has no table"),
        (lambda: replace(SMALL, loop=Loop(batch=0)), "--batch 0: steps have no end"),
        (lambda: replace(SMALL, loop=Loop(batch=4, accumulate=3)), "--batch 4 cannot be cut into 3 micro-batches"),
        (lambda: replace(SMALL, gamma=1.1), "--gamma 1.1: must be a finite number, at least 0 and at most 1"),
        (lambda: replace(SMALL, data=Tables(path="nowhere.csv")), "nowhere.csv"),
    ],
)
def test_what_does_not_fit_is_named(recipe: Callable[[], Recipe], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        recipe().build()
