"""A recipe as JSON and back: leaf values plain, each dataclass with the name of its class.

    {"class": "LanguageRecipe", "model": {"class": "gpt2", "width": 192}, "optim": {"class": "AdamW", "lr": 0.001}}

Names outlive the files: a class is stored by its own name, a model's config by its model's file (the `model_type` of
config.json). Both are found in the package's source, which is read once, so that only the file of the class is
imported. A class of the user's own is stored as "module:Class" (`own_code`).
"""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from descend import models, own_code
from descend.errors import Mistake, nearest
from descend.files import field
from descend.kinds.recipe import Recipe
from descend.weights.layout import make_part

CLASS = "class"
MOST_THREADS = 1024
PACKAGE = Path(__file__).parents[1]
HOMES = (
    "data", "engine", "kinds", "losses", "metrics", "nn", "ops", "optim", "pipelines", "sampling", "tasks", "text",
    "weights",
)  # fmt: skip
"""Folders with classes that a recipe may hold."""
FROZEN = re.compile(r"^@dataclass\((?=[^)]*\bfrozen=True)[^)]*\)\nclass (\w+)", re.MULTILINE)

RENAMED = {
    "descend.recipes.kinds.control:Memory": "ReplayMemory",
    "descend.recipes.kinds.table:Balance": "ClassBalance",
    "descend.ops.teacher_forcing:Exponential": "ExponentialDecay",
    "descend.ops.teacher_forcing:InverseSigmoid": "InverseSigmoidDecay",
    "descend.ops.teacher_forcing:Linear": "LinearDecay",
    "descend.optim.proximal:Proximal": "ProximalGradient",
    "Pictures": "ImageSource",
    "FewPictures": "FewImages",
}
"""What a run stored, a name or a path -> the class that it is now. Only for classes that have another name today."""


class Saved(NamedTuple):
    """What recipe.json says of a run."""

    name: str
    recipe: Recipe
    threads: int


def read_saved(saved: dict[str, Any], path: Path) -> Saved:
    """The content of recipe.json; what is missing or of a wrong type is a mistake that names it."""
    recipe = from_json(field(saved, "values", dict, path), str(path))
    if not isinstance(recipe, Recipe):
        raise Mistake(f"{path}: values are not those of a recipe")
    threads = field(saved, "environment.threads", int, path)
    if not 1 <= threads <= MOST_THREADS:
        raise Mistake(f"{path}: environment.threads = {threads} must be from 1 to {MOST_THREADS:,}")
    return Saved(field(saved, "name", str, path), recipe, threads)


def to_json(value: Any) -> Any:
    """Nested dicts with the name of each part's class."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {CLASS: class_name(type(value)), **fields}
    if isinstance(value, dict):
        return {key: to_json(v) for key, v in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(v) for v in value]
    return value


def from_json(value: Any, where: str = "recipe.json") -> Any:
    """The value that `to_json` wrote; an unknown class or field is a mistake that names it."""
    if isinstance(value, list):
        return tuple(from_json(v, where) for v in value)
    if not isinstance(value, dict):
        return value
    fields = {key: from_json(v, where) for key, v in value.items() if key != CLASS}
    if CLASS not in value:
        return fields
    kind = find_class(field(value, CLASS, str, where), where)
    return make_part(kind, fields, where)


def class_name(kind: type) -> str:
    """How a class is stored."""
    if kind.__module__ in source_index().get(kind.__name__, ()):
        return kind.__name__
    file = kind.__module__.removeprefix("descend.models.")
    if file in models.names() and models.config_class(file) is kind:
        return file
    return own_code.store_name(kind)


def find_class(name: str, where: str) -> Any:
    """The dataclass that a stored name means; also one that was stored by its path, wherever it is today."""
    name = RENAMED.get(name, name)
    module, _, symbol = name.rpartition(":")
    symbol = RENAMED.get(symbol, symbol) if module.startswith("descend.") else symbol
    kind: object
    file = module.removeprefix("descend.models.")
    if module.startswith("descend.models.") and file in models.names():
        kind = getattr(import_module(module), symbol, None)
    elif module and not module.startswith("descend."):
        kind = own_code.find_own(name, where)
    elif symbol in models.names():
        kind = models.config_class(symbol)
    else:
        known = source_index()
        if symbol not in known:
            raise Mistake(f"{where}: class {symbol!r} does not exist in this version.{nearest(symbol, known)}")
        kind = getattr(import_module(known[symbol][0]), symbol)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise Mistake(f"{where}: {name!r} is not a recipe's class")
    return kind


@cache
def source_index() -> dict[str, tuple[str, ...]]:
    """Class -> the modules that define a frozen dataclass of that name: one, as a test makes sure."""
    found: dict[str, tuple[str, ...]] = {}
    for path in (path for home in HOMES for path in sorted((PACKAGE / home).rglob("*.py"))):
        module = ".".join(("descend", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for name in FROZEN.findall(path.read_text(encoding="utf-8")):
            found[name] = (*found.get(name, ()), module)
    return found
