"""Open-vocabulary recipes: as many names are kept apart as the data say; training never asks for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from descend.engine.evaluation import score_set
from descend.recipes.open_vocabulary_scenes import RECIPE


@pytest.mark.system("open-vocabulary-detection", "kept-apart")
def test_names_kept_apart() -> None:
    recipe = replace(RECIPE, data=replace(RECIPE.data, scenes=40, size=64), loop=replace(RECIPE.loop, batch=4))
    parts = recipe.build()
    assert parts.model.config.apart == 12
    assert "red circle" in parts.facts["kept apart"]
    batch = next(parts.stream)
    parts.task.train()
    assert parts.model(batch["x"]).logits.shape[-1] == 36
    (move,) = parts.task.moves(batch)
    move.value().total().backward()
    parts.task.eval()
    scores = score_set(parts.task, recipe.test())
    assert 0 <= scores["map50"] < 0.2  # it has learned nothing
    assert {"map", "map50", "loss"} <= scores.keys()
