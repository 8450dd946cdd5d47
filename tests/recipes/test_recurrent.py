"""Recurrent recipes: opinions are told apart, a text is learned, the state resumes, and what is written is text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend import recipes
from descend.data.text.plain import Text
from descend.engine.evaluation import score_set
from descend.errors import Mistake
from tests.engine.small import text_file, training


def small_text(name: str, folder: Path) -> Any:
    recipe: Any = recipes.get(name)
    return replace(
        recipe,
        model=replace(recipe.model, width=32, context=16, dropout=0.0),
        data=Text(path=str(text_file(folder)), tokenizer="characters"),
        loop=replace(recipe.loop, batch=8),
    )


@pytest.mark.system("rnn-task-heads")
@pytest.mark.system("rnn-task-heads", "sentiment")
@pytest.mark.system("att-blstm")
@pytest.mark.system("att-blstm", "trained")
def test_opinions_are_told_apart_by_their_order(tmp_path: Path) -> None:
    recipe: Any = recipes.get("lstm-sentiment")
    small = replace(recipe.model, embedding=32, width=32, dropout=0.0)
    recipe = replace(recipe, model=small, optim=replace(recipe.optim, lr=1e-2), loop=replace(recipe.loop, ema=0.0))
    run = training(recipe)
    for _ in range(100):
        run.advance()
    with torch.no_grad():
        assert score_set(run.task, recipe.test())["accuracy"] > 0.95
    run.parts.model.save_pretrained(tmp_path)
    assert run.parts.save_extra is not None
    run.parts.save_extra(tmp_path)
    first, second = descend.predict(tmp_path, "the film was good , not bad", "the film was bad , not good", top=1)
    for found, label in ((first, "positive"), (second, "negative")):
        (answer,) = found["answers"]
        assert (answer["label"], answer["probability"] > 0.9) == (label, True)
    assert run.parts.exhibits is not None
    assert [exhibit.kind for exhibit in run.parts.exhibits()] == ["confusion", "reliability", "table", "table"]


@pytest.mark.system("truncated-bptt")
@pytest.mark.system("truncated-bptt", "stream")
@pytest.mark.system("lstm")
@pytest.mark.system("gru")
@pytest.mark.parametrize("name", ["lstm-pydoc", "gru-chars"])
def test_a_text_is_learned_and_written(name: str, tmp_path: Path) -> None:
    recipe = small_text(name, tmp_path)
    run = training(recipe)
    losses = [run.advance()["loss"] for _ in range(40)]
    assert losses[-1] < 0.7 * losses[0]
    run.parts.model.save_pretrained(tmp_path / "model")
    run.parts.save_extra(tmp_path / "model")  # type: ignore[misc]
    text = descend.generate(tmp_path / "model", "the ", tokens=60, temperature=0)
    assert text.startswith("the ")
    assert len(text) > 40


@pytest.mark.system("truncated-bptt")
def test_micro_batches_are_the_batch(tmp_path: Path) -> None:
    recipe = small_text("lstm-pydoc", tmp_path)
    whole, halves = training(recipe), training(replace(recipe, loop=replace(recipe.loop, accumulate=2)))
    for _ in range(4):
        assert whole.advance()["loss"] == pytest.approx(halves.advance()["loss"], rel=1e-4)


def test_a_head_for_each_word_is_refused_for_texts() -> None:
    recipe: Any = recipes.get("lstm-sentiment")
    with pytest.raises(Mistake, match=r"--model\.head each"):
        replace(recipe, model=replace(recipe.model, head="each")).build()
