"""A recipe that cannot fit into memory is refused before it is built, with the figure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from descend import recipes
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds import memory
from descend.kinds.memory import build_within_memory, count_parameters
from descend.kinds.recipe import Recipe
from descend.models.gpt2 import GPT2Config
from descend.models.mlp import MLPConfig


def test_parameters_are_counted_without_making_them() -> None:
    assert count_parameters(MLPConfig(hidden=(10**6, 10**6))) == 2 * 10**6 + 10**12 + 10**6 + 10**6 + 1
    assert count_parameters(None) == 0
    assert count_parameters(GPT2Config(width=10, heads=3)) == 0  # told when it is built


def test_what_data_give_is_not_counted() -> None:
    small, large = (count_parameters(GPT2Config(vocab=v, width=64, heads=4, depth=1)) for v in (300, 50_000))
    assert small == large


def refuse(self: Recipe) -> Parts:
    raise AssertionError("nothing is built")


@pytest.mark.parametrize("name", ["gpt2-pydoc", "bert-classify"])
def test_a_model_beyond_memory_is_not_built(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipes.get(name)
    wide = replace(recipe, model=replace(recipe.model, width=6 * 2**17))
    monkeypatch.setattr(type(recipe), "build", refuse)
    with pytest.raises(
        Mistake, match=r"a model of [\d,]+ parameters takes at least [\d,.]+ GB, and [\d,.]+ GB are free"
    ):
        build_within_memory(wide)


def test_a_batch_beyond_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipes.get("gan-mixture")
    monkeypatch.setattr(memory, "available_memory", lambda: 10**8)
    build_within_memory(recipe)
    with pytest.raises(Mistake, match="give a smaller --batch or a larger --accumulate"):
        build_within_memory(replace(recipe, loop=replace(recipe.loop, batch=10**6)))
    monkeypatch.setattr(memory, "available_memory", lambda: 0)  # the system does not tell
    build_within_memory(replace(recipe, loop=replace(recipe.loop, batch=10**6)))
