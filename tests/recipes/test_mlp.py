"""MLP recipes: digits, and what a hidden layer is for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from descend import recipes
from descend.data.tables.source import Table
from descend.engine.training import mean_scores
from tests.engine.small import training


def accuracy(recipe: Any, steps: int) -> float:
    recipe = replace(recipe, loop=replace(recipe.loop, ema=0.0))
    run = training(recipe)
    for _ in range(steps):
        run.advance()
    with torch.no_grad():
        return mean_scores(run.task, recipe.test())["accuracy"]


@pytest.mark.system("mlp")
def test_digits_are_learned() -> None:
    """A tenth of the recipe; the whole of it reaches 98%."""
    assert accuracy(recipes.get("mlp-digits"), 100) > 0.9


@pytest.mark.system("xor-and-inseparability", "feature-lifting-factory")
@pytest.mark.parametrize("shape", ["xor", "factory"])
def test_a_hidden_layer_does_what_none_cannot(shape: Any) -> None:
    recipe: Any = replace(recipes.get("mlp-moons"), data=Table(embedded=shape))
    linear = replace(recipe, model=replace(recipe.model, hidden=()))
    assert accuracy(linear, 100) < 0.8
    assert accuracy(recipe, 100) > 0.97
