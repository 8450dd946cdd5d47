"""Every number that a recipe may hold declares its range; every size that is published lies in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from importlib import import_module
from typing import Any, get_args

import pytest

from descend import models, recipes
from descend.kinds.saved import find_class, source_index
from descend.ranges import Count, check, find_range, read_hints

NOT_A_FLAG = {"parameters"}  # of a recipe: what a test counts
STATE = {"Watch"}  # of optim/: what a schedule remembers, not what a recipe says


def find_unranged(hint: Any) -> Iterator[Any]:
    """int and float in a type that no range is declared for."""
    if find_range(hint) is not None:
        return
    if hint in (int, float):
        yield hint
    for inner in get_args(hint):
        yield from find_unranged(inner)


def list_unranged(kind: type) -> list[str]:
    hints = read_hints(kind).items()
    return [f"{kind.__name__}.{name}" for name, hint in hints if name not in NOT_A_FLAG and [*find_unranged(hint)]]


def find_parts(value: object) -> Iterator[type]:
    """The dataclasses of a value, at any depth."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from find_parts(item)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield type(value)
        for f in dataclasses.fields(value):
            yield from find_parts(getattr(value, f.name))


def test_every_number_of_a_recipe_has_a_range() -> None:
    kinds = {kind for name in recipes.names() for kind in find_parts(recipes.get(name))}
    assert len(kinds) > 50
    assert not [field for kind in sorted(kinds, key=str) for field in list_unranged(kind)]


def test_every_number_of_an_optimizer_or_schedule_has_a_range() -> None:
    rules = [name for name, (module, *_) in source_index().items() if module.startswith("descend.optim.")]
    assert len(rules) > 20
    assert not [field for name in rules if name not in STATE for field in list_unranged(find_class(name, ""))]


@pytest.mark.parametrize("name", models.names())
def test_every_size_of_a_model_has_a_range_and_lies_in_it(name: str) -> None:
    assert not list_unranged(models.config_class(name))
    file = import_module(f"descend.models.{name}")
    for size, config in {"TINY": file.TINY, **getattr(file, "SIZES", {})}.items():
        check(config, f"{name}.{size}")


def test_the_rule_can_fail() -> None:
    assert [*find_unranged(float)] == [float]
    assert [*find_unranged(tuple[int, ...] | None)] == [int]
    assert not [*find_unranged(str)]
    assert not [*find_unranged(Count | None)]
