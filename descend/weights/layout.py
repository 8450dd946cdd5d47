"""config.json, both ways: our frozen config dataclass and the field names of the Hugging Face folder."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from descend.errors import Mistake

Config = TypeVar("Config")


@dataclass(frozen=True)
class Layout:
    """How a model's configuration is written.

    `fields` maps ours to theirs; with several names the first is read and all are written; none: they have our names.
    A field that the file leaves out takes our default, so the dataclass must have the defaults of the published format.
    `fixed` lists settings that this code computes in one way only: another value in the file is refused, never ignored.
    """

    architecture: str
    fields: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)  # ours -> a class with `read(values)` and `write()`
    older: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: values  # brings an older file up to date
    bare_prefix: str = ""  # checkpoints of the bare model leave this prefix out of every key


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file, or a mistake that names the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Mistake(f"{path} does not exist; a model folder needs it") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Mistake(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise Mistake(f"{path} holds a {type(value).__name__}, not a JSON object")
    return value


def config_from_json(config_class: type[Config], layout: Layout, values: dict[str, Any], path: Path) -> Config:
    """Our config from the file's values; a fixed setting with another value is a mistake."""
    values = layout.older(values)
    for name, expected in layout.fixed.items():
        if values.get(name, expected) != expected:
            raise Mistake(f"{path}: {name} = {values[name]!r} is not supported, only {expected!r}")
    ours: dict[str, Any] = {}
    try:
        for name, theirs in named_fields(config_class, layout).items():
            first = theirs if isinstance(theirs, str) else theirs[0]
            if first in values:
                ours[name] = layout.parts[name].read(values[first]) if name in layout.parts else values[first]
        return config_class(**ours)
    except (TypeError, ValueError) as error:
        raise Mistake(f"{path}: {error}") from None


def config_to_json(config: Any, layout: Layout, model_type: str, dtype: str) -> dict[str, Any]:
    """The file's values, with the two names by which `load` and transformers find the class."""
    values: dict[str, Any] = {
        "architectures": [layout.architecture],
        "model_type": model_type,
        "dtype": dtype,
    }
    for name, theirs in named_fields(type(config), layout).items():
        for key in (theirs,) if isinstance(theirs, str) else theirs:
            value = getattr(config, name)
            values[key] = value.write() if name in layout.parts else value
    return values | layout.fixed


def named_fields(config_class: type, layout: Layout) -> dict[str, str | tuple[str, ...]]:
    """Every field of the config and its name, or names, in the file."""
    ours = [f.name for f in dataclasses.fields(config_class)]
    if not layout.fields:
        return {name: name for name in ours}
    if unnamed := sorted(set(ours) - set(layout.fields)):
        raise TypeError(f"{config_class.__name__}: no name in the file for {unnamed}")
    return layout.fields
