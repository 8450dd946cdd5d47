"""A score to watch that the task does not give is refused before the first step."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend import recipes
from descend.engine.evaluation import check_watched
from descend.errors import Mistake


def test_an_unknown_score_is_told_with_those_there_are() -> None:
    recipe = recipes.get("mlp-wine")
    parts = recipe.build()
    before = torch.get_rng_state()
    check_watched(parts, replace(recipe.loop, watch="max accuracy"))
    with pytest.raises(Mistake) as caught:
        check_watched(parts, replace(recipe.loop, watch="max acuracy"))
    assert str(caught.value) == (
        "--watch 'max acuracy': there is no score 'acuracy'. Did you mean 'accuracy'? Known: accuracy, f1, loss"
    )
    assert torch.equal(before, torch.get_rng_state())
    assert parts.task.training


def test_nothing_is_refused_where_nothing_validates() -> None:
    recipe = recipes.get("mlp-wine")
    check_watched(replace(recipe.build(), valid=[]), replace(recipe.loop, watch="max what"))
