"""A recipe as JSON and back: leaf values plain, each dataclass with the name of its class.

A class is looked up by name among those of descend and those already imported; nothing else is ever loaded.
"""

from __future__ import annotations

import dataclasses
import sys
from importlib import import_module
from typing import Any

from descend.errors import Mistake

CLASS = "class"


def to_json(value: Any) -> Any:
    """Nested dicts with the class of each part."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {CLASS: f"{type(value).__module__}:{type(value).__qualname__}", **fields}
    if isinstance(value, dict):
        return {key: to_json(v) for key, v in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(v) for v in value]
    return value


def from_json(value: Any, where: str = "recipe.json") -> Any:
    """The value that `to_json` wrote; a field that is gone or new is a mistake that names it."""
    if isinstance(value, list):
        return tuple(from_json(v, where) for v in value)
    if not isinstance(value, dict):
        return value
    fields = {key: from_json(v, where) for key, v in value.items() if key != CLASS}
    if CLASS not in value:
        return fields
    kind = _find(value[CLASS], where)
    known = {f.name for f in dataclasses.fields(kind)}
    if unknown := set(fields) - known:
        raise Mistake(f"{where}: {kind.__name__} has no field {sorted(unknown)[0]!r}; another version wrote it")
    return kind(**fields)


def _find(name: str, where: str) -> Any:
    module, _, symbol = name.partition(":")
    if not (module in sys.modules or module.startswith("descend.")):
        raise Mistake(f"{where}: class {name!r} is not part of descend; import {module} before loading this run")
    try:
        kind = getattr(sys.modules.get(module) or import_module(module), symbol)
    except (ImportError, AttributeError):
        raise Mistake(f"{where}: class {name!r} does not exist in this version of descend") from None
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise Mistake(f"{where}: {name!r} is not a recipe's class")
    return kind
