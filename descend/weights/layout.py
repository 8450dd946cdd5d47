"""config.json, both ways: our frozen config dataclass and the field names of the Hugging Face folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_origin

from descend.errors import Mistake
from descend.ranges import describe_wrong, format_value, read_hints, shorten

Config = TypeVar("Config")
Library = Literal["transformers", "diffusers", "descend"]
DIFFUSERS = "0.42.1"
"""The release of diffusers whose folders are written; it reads its number to know what an older one left out."""


@dataclass(frozen=True)
class Layout:
    """How a model's configuration is written.

    `fields` maps ours to theirs; with several names the first is read and all are written; none: they have our names.
    A field that the file leaves out takes our default, so the dataclass must have the defaults of the published format.
    `fixed` lists settings that this code computes in one way only: another value in the file is refused, never ignored.
    `library` is whose folder it is: diffusers' files name the class (`_class_name`), those of transformers the family;
    "descend" says that no other library has such a class, whatever names the fields bear.
    """

    architecture: str
    fields: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)  # ours -> a class with `read(values)` and `write()`
    older: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: values  # brings an older file up to date
    newer: Callable[[dict[str, Any]], dict[str, Any]] = lambda values: values  # what is written, from our names
    bare_prefix: str = ""  # checkpoints of the bare model leave this prefix out of every key
    library: Library = "transformers"


def config_from_json(config_class: type[Config], layout: Layout, values: dict[str, Any], path: Path) -> Config:
    """Our config from the file's values; a fixed setting with another value is a mistake."""
    ours: dict[str, Any] = {}
    try:
        values = layout.older(values)
        for name, expected in layout.fixed.items():
            if values.get(name, expected) != expected:
                raise Mistake(f"{path}: {name} = {values[name]!r} is not supported, only {expected!r}")
        for name, theirs in named_fields(config_class, layout).items():
            first = theirs if isinstance(theirs, str) else theirs[0]
            if first in values:
                ours[name] = _read_field(config_class, layout, name, values[first], f"{path}: {first}")
        return config_class(**ours)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Mistake(f"{path}: {error}") from None


def make_part(kind: type[Config], values: Any, where: str) -> Config:
    """A dataclass from the fields of a JSON object; one that is missing, unknown or of a wrong type is named."""
    if not isinstance(values, dict):
        raise Mistake(f"{where} is {shorten(format_value(values))}, not an object")
    made: Any = kind
    fields = {found.name: found for found in dataclasses.fields(made)}
    try:
        hints = read_hints(made)
    except NameError:  # a class of the user's own, with names that only its file knows
        hints = dict.fromkeys(fields, Any)
    for name, value in values.items():
        if name not in fields:
            raise Mistake(f"{where}: {kind.__name__} has no field {name!r}; another version wrote it")
        plain = _describe_plain(fields[name], value) if hints[name] is Any else ""
        if wrong := plain or describe_wrong(value, hints[name]):
            raise Mistake(f"{where}: {name} = {shorten(format_value(value))} of {kind.__name__} must be {wrong}")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise Mistake(f"{where}: {name} = {shorten(format_value(value))} of {kind.__name__} is too large")
    try:
        return kind(**values)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Mistake(f"{where}: {kind.__name__}: {error}") from None


def _describe_plain(known: dataclasses.Field[Any], value: Any) -> str:
    """What should be there instead of a plain value, where the default is a dataclass."""
    default = known.default if known.default_factory is dataclasses.MISSING else known.default_factory()
    if dataclasses.is_dataclass(default) and not dataclasses.is_dataclass(value) and not _holds_parts(value):
        return f"an object with a class, such as {type(default).__name__}"
    return ""


def _holds_parts(value: Any) -> bool:
    """Whether it is an object of dataclasses, as the optimizers of several players are."""
    return isinstance(value, dict) and bool(value) and all(dataclasses.is_dataclass(part) for part in value.values())


def _read_field(config_class: type, layout: Layout, name: str, value: Any, where: str) -> Any:
    """The value of one field of ours, of its type and in its range."""
    if name in layout.parts:
        return layout.parts[name].read(value)
    hint = read_hints(config_class)[name]
    if wrong := describe_wrong(value, hint):
        raise Mistake(f"{where} = {shorten(format_value(value))}: must be {wrong}")
    return freeze_lists(value) if get_origin(hint) is tuple else value


def freeze_lists(value: Any) -> Any:
    """Tuples for the lists of a JSON file."""
    return tuple(map(freeze_lists, value)) if isinstance(value, list) else value


def config_to_json(config: Any, layout: Layout, model_type: str, dtype: str) -> dict[str, Any]:
    """The file's values, with the names by which `load`, transformers or diffusers find the class."""
    values: dict[str, Any] = {"architectures": [layout.architecture], "model_type": model_type, "dtype": dtype}
    if layout.library == "diffusers":
        values = {"_class_name": layout.architecture, "_diffusers_version": DIFFUSERS}
    for name, theirs in named_fields(type(config), layout).items():
        for key in (theirs,) if isinstance(theirs, str) else theirs:
            value = getattr(config, name)
            values[key] = value.write() if name in layout.parts else value
    return layout.newer(values | layout.fixed)


def named_fields(config_class: type, layout: Layout) -> dict[str, str | tuple[str, ...]]:
    """Every field of the config and its name, or names, in the file."""
    ours = [f.name for f in dataclasses.fields(config_class)]
    if not layout.fields:
        return {name: name for name in ours}
    if unnamed := sorted(set(ours) - set(layout.fields)):
        raise TypeError(f"{config_class.__name__}: no name in the file for {unnamed}")
    return layout.fields
