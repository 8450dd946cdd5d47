"""A recipe's values by the names of its flags."""

from __future__ import annotations

import pytest

from descend import recipes
from descend.errors import Mistake
from descend.kinds.changes import change
from descend.optim.rules import SGD


def test_values_go_where_the_flags_go() -> None:
    recipe = recipes.get("gpt2-pydoc")
    found = change(recipe, {"optim.lr": 0.25, "steps": 7, "eval-every": 3, "--model.width": 64})
    assert (found.optim.lr, found.loop.steps, found.loop.eval_every, found.model.width) == (0.25, 7, 3, 64)
    assert found.data == recipe.data
    assert change(recipe, {}) == recipe


def test_a_part_may_be_replaced_whole_and_a_list_stands_for_a_tuple() -> None:
    recipe = recipes.get("gpt2-pydoc")
    assert change(recipe, {"optim": SGD(lr=0.5)}).optim == SGD(lr=0.5)
    assert change(recipe, {"optim.betas": [0.5, 0.75]}).optim.betas == (0.5, 0.75)


def test_an_unknown_name_and_a_wrong_value_are_mistakes() -> None:
    recipe = recipes.get("gpt2-pydoc")
    with pytest.raises(Mistake, match=r"unknown value 'optim.rl'. Did you mean 'optim.lr'"):
        change(recipe, {"optim.rl": 0.25})
    with pytest.raises(Mistake, match=r"--optim.lr -1: must be"):
        change(recipe, {"optim.lr": -1})
    with pytest.raises(Mistake, match=r"--steps a lot: must be a whole number"):
        change(recipe, {"steps": "a lot"})
    with pytest.raises(Mistake, match="unknown value 'about'"):
        change(recipe, {"about": "mine"})
