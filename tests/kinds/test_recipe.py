"""A step never asks for more examples than there are, in any kind; and it is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from descend import recipes
from descend.engine.loop import Loop
from descend.errors import Mistake
from descend.kinds.recipe import describe_batch, fit_batch, micro_batch
from descend.verbs.asked import read_asked
from descend.verbs.train import TrainFlags
from proofs.tiny import shrink_flags, write_files
from tests.engine.small import training


@pytest.mark.parametrize(
    ("batch", "accumulate", "processes", "examples", "fitted"),
    [
        (60, 1, 1, 240, 60),
        (60, 1, 1, 15, 15),
        (60, 4, 1, 15, 12),
        (60, 2, 3, 15, 12),
        (60, 4, 1, 3, 4),
        (0, 1, 1, 15, 15),
        (0, 2, 1, 15, 14),
        (15, 1, 1, 15, 15),
    ],
)
def test_a_batch_fits_the_examples(
    batch: int, accumulate: int, processes: int, examples: int, fitted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    monkeypatch.setenv("RANK", "0")
    loop = Loop(batch=batch, accumulate=accumulate)
    assert fit_batch(loop, examples) == fitted
    assert micro_batch(loop, fitted) % processes == 0
    said = describe_batch(loop, fitted)
    assert said == ({"batch": f"{fitted} instead of 60: there are no more training examples"} if fitted < batch else {})


def test_no_examples_at_all() -> None:
    with pytest.raises(Mistake, match="the data is empty"):
        fit_batch(Loop(), 0)


SAMPLE = ["cnn-images", "transfer-scenes", "beit-digits", "mlp-csv", "gpt2-chars", "gru-chars", "bert-pydoc"]
SAMPLE += ["bert-classify", "lstm-sentiment", "lstm-translate", "clip-scenes", "unet-scenes", "localise-scenes"]
SAMPLE += ["skip-gram-pydoc", "glove-pydoc"]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_step_of_every_kind_fits_small_data(name: str, tmp_path: Path) -> None:
    flags = shrink_flags(name, write_files(tmp_path))
    recipe = read_asked(TrainFlags, recipes.get(name), flags, name).recipe
    run = training(replace(recipe, loop=replace(recipe.loop, batch=100_000)))
    assert "instead of 100000" in run.parts.facts["batch"]
    run.advance()
