"""change(recipe, {"optim.lr": 3e-4, "steps": 500}): a recipe with other values, by the names of its flags.

The names are those of the command line without the dashes in front: `--data.path` is "data.path", `--eval-every` is
"eval_every" or "eval-every". A value is checked as a flag's is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from descend.errors import Mistake, nearest
from descend.kinds.recipe import Recipe

FIXED = ("about", "parameters", "takes")  # what is said of a recipe, not part of it


def change(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """The recipe with these values; an unknown name is a mistake that names the nearest."""
    known = {".".join(path): path for path in list_paths(recipe)}
    flat = {name.removeprefix("loop."): path for name, path in known.items()}
    for given, value in values.items():
        name = given.lstrip("-").replace("-", "_")
        if name not in flat:
            raise Mistake(f"unknown value {given!r}.{nearest(name, list(flat))} The names are those of the flags")
        recipe = set_value(recipe, flat[name], value)
    return recipe


def list_paths(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The way to every field of a dataclass and of what it holds."""
    for field in dataclasses.fields(value):
        part = getattr(value, field.name)
        if not above and field.name in FIXED:
            continue
        yield (*above, field.name)
        if dataclasses.is_dataclass(part):
            yield from list_paths(part, (*above, field.name))


def set_value(whole: Any, path: tuple[str, ...], value: Any) -> Any:
    """The dataclass with another value at the end of the path. A list stands for a tuple."""
    head, *rest = path
    if rest:
        value = set_value(getattr(whole, head), tuple(rest), value)
    elif isinstance(getattr(whole, head), tuple) and isinstance(value, list):
        value = tuple(value)
    return dataclasses.replace(whole, **{head: value})
