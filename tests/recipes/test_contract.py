"""Every recipe keeps the contract by being there: it builds, trains, resumes to the bit, and survives JSON."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from descend import recipes
from descend.engine.distributed import World
from descend.engine.state import pack, unpack
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.kinds.saved import from_json, to_json

SIZES = ("scenes", "count", "records", "graphs")


def start(recipe: Recipe) -> Training:
    torch.set_num_threads(1)
    return Training(recipe.build(), recipe.loop, recipe.schedule, World())


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    tensors: dict[str, Tensor] = {}
    tree = json.loads(json.dumps(pack(state, tensors)))
    copy: dict[str, Any] = unpack(tree, {name: tensor.clone() for name, tensor in tensors.items()})
    return copy


def shrink(recipe: Recipe) -> Recipe:
    """The same recipe with fewer data, and few examples a step (0 are all, as a full-batch optimizer wants)."""
    sizes = [field.name for field in fields(recipe.data) if field.name in SIZES]
    fewer = {name: min(getattr(recipe.data, name), 200) for name in sizes}
    loop = replace(recipe.loop, batch=min(recipe.loop.batch, 8))
    return replace(recipe, loop=loop, **({"data": replace(recipe.data, **fewer)} if fewer else {}))


@pytest.mark.system("training-loop", "one-loop")
@pytest.mark.parametrize("name", recipes.names())
def test_builds_what_it_says_and_resumes_to_the_bit(name: str) -> None:
    recipe = shrink(recipes.get(name))
    run = start(recipe)
    assert recipe.parameters == sum(p.numel() for p in run.parts.model.parameters())
    for _ in range(2):
        run.advance()
    state = through_json(run.state_dict())
    first = run.advance()
    again = start(recipe)
    again.load_state_dict(state)
    assert again.advance() == first
    for (key, a), b in zip(run.task.state_dict().items(), again.task.state_dict().values(), strict=True):
        assert torch.equal(a, b), key


@pytest.mark.parametrize("name", recipes.names())
def test_is_the_same_after_json_and_says_what_it_is(name: str) -> None:
    recipe = recipes.get(name)
    assert from_json(json.loads(json.dumps(to_json(recipe)))) == recipe
    assert recipe.about
    assert recipe.takes
    assert recipe.loop.watch.split()[0] in ("min", "max")


def test_an_unknown_recipe_is_answered_with_the_nearest() -> None:
    with pytest.raises(Mistake, match="Did you mean 'gpt2-pydoc'"):
        recipes.get("gpt2-pydocs")
