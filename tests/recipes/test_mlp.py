"""MLP recipes: digits, and what a hidden layer is for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from descend import recipes
from descend.data.tables.source import Table
from descend.engine.evaluation import score_set
from descend.report.exhibits import make_section
from tests.engine.small import training


def accuracy(recipe: Any, steps: int) -> float:
    recipe = replace(recipe, loop=replace(recipe.loop, ema=0.0))
    run = training(recipe)
    for _ in range(steps):
        run.advance()
    with torch.no_grad():
        return score_set(run.task, recipe.test())["accuracy"]


@pytest.mark.system("mlp")
@pytest.mark.system("mlp", "trains")
def test_digits_are_learned() -> None:
    """A tenth of the recipe; the whole of it reaches 98%."""
    assert accuracy(recipes.get("mlp-digits"), 100) > 0.9


@pytest.mark.system("xor-and-inseparability")
@pytest.mark.system("feature-lifting-factory")
@pytest.mark.parametrize("shape", ["xor", "factory"])
def test_a_hidden_layer_does_what_none_cannot(shape: Any) -> None:
    recipe: Any = replace(recipes.get("mlp-moons"), data=Table(embedded=shape))
    linear = replace(recipe, model=replace(recipe.model, hidden=()))
    assert accuracy(linear, 100) < 0.8
    assert accuracy(recipe, 100) > 0.97


def exhibits(shape: Any, hidden: tuple[int, ...]) -> dict[str, Any]:
    """What the report shows of a model trained for 100 steps, by title."""
    recipe: Any = replace(recipes.get("mlp-moons"), data=Table(embedded=shape))
    recipe = replace(recipe, model=replace(recipe.model, hidden=hidden), loop=replace(recipe.loop, ema=0.0))
    run = training(recipe)
    for _ in range(100):
        run.advance()
    with torch.no_grad():
        return {exhibit.title: exhibit for exhibit in run.parts.exhibits()}  # type: ignore[misc]


@pytest.mark.system("xor-and-inseparability", "drawn")
def test_both_boundaries_of_xor_are_drawn() -> None:
    """VOM-B.11: without a hidden layer a line cuts the plane in two; with one, both diagonals are regions."""
    for hidden, turns in (((), 1), ((16,), 2)):
        regions = exhibits("xor", hidden)["Decision regions"]
        winner = torch.tensor(regions.content["winner"])
        corners = winner[[0, 0, -1, -1], [0, -1, -1, 0]]
        assert "<svg" in make_section(regions)
        assert ((corners.diff() != 0).sum() + (corners[0] != corners[-1]) == 4) == (turns == 2)


@pytest.mark.system("feature-lifting-factory", "drawn")
def test_input_and_output_space_of_the_factory_are_drawn() -> None:
    found = exhibits("factory", (16,))
    clouds = list(found["Logits"].content.values())
    assert all("<svg" in make_section(found[title]) for title in ("Decision regions", "Logits"))
    right = [
        (torch.tensor(cloud)[:, k] > torch.tensor(cloud)[:, 1 - k]).float().mean() for k, cloud in enumerate(clouds)
    ]
    assert min(right) > 0.9  # each class lies on its side of the diagonal
