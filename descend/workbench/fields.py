"""The form of a recipe: every flag with its type, range, default and help, made from the recipe's own types.

read_values turns what a form sends into the values of a recipe, and write_flags those that differ into flags, so that
the form and the shell mean the same.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from descend.errors import Mistake
from descend.kinds.changes import FIXED, change
from descend.kinds.recipe import Recipe
from descend.ranges import Range

Leaf = int | float | str | bool | None | tuple[Any, ...]


@dataclass(frozen=True)
class Field:
    """A flag as a form shows it."""

    name: str
    group: str
    default: Leaf
    about: str
    kind: str  # number, whole, text, yes, choice, list
    bounds: str = ""
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    def show(self, value: Leaf) -> str:
        """A value as a form and a shell write it."""
        if isinstance(value, tuple):
            return " ".join(map(str, value))
        return str(value)

    def read(self, text: str) -> Leaf:
        """What was written, in the type of the flag."""
        words = text.strip()
        if self.kind == "yes":
            return words.lower() in ("true", "on", "yes", "1")
        if words == "None" and self.default is None:
            return None
        try:
            if self.kind == "whole":
                return int(words)
            if self.kind == "number":
                return float(words)
            if self.kind == "list":
                return tuple(read_word(word, self.default) for word in words.replace(",", " ").split())
        except ValueError:
            takes = {"whole": "a whole number", "number": "a number", "list": "numbers with spaces between them"}
            raise Mistake(f"{self.flag} takes {takes[self.kind]}, not {words[:60]!r}.") from None
        if self.choices and words not in self.choices:
            raise Mistake(f"{self.flag}: {words[:60]!r} is not one of {', '.join(self.choices)}.")
        return int(words) if isinstance(self.default, int) and self.choices else text

    def write(self, value: Leaf) -> list[str]:
        """The value as words of a command."""
        if isinstance(value, bool):
            path, _, leaf = self.name.replace("_", "-").rpartition(".")
            return [self.flag] if value else [f"--{path}{'.' if path else ''}no-{leaf}"]
        return [self.flag, *([str(part) for part in value] if isinstance(value, tuple) else [str(value)])]


def read_word(word: str, default: Leaf) -> Any:
    """A part of a list, as its other parts are."""
    kind = type(default[0]) if isinstance(default, tuple) and default else str
    return kind(word)


def list_fields(recipe: Recipe) -> list[Field]:
    """Every flag of a recipe that is a single value, the loop's own first."""
    found = list(walk(recipe, (), ""))
    return sorted(found, key=lambda field: field.group != "")


def walk(value: Any, above: tuple[str, ...], group: str) -> Iterator[Field]:
    hints, abouts = get_type_hints(type(value), include_extras=True), read_abouts(cast(Hashable, type(value)))
    for one in dataclasses.fields(value):
        part = getattr(value, one.name)
        if not above and (one.name in FIXED or not one.init):
            continue
        path = (*above, one.name)
        if dataclasses.is_dataclass(part):
            inner = () if path == ("loop",) else path
            yield from walk(part, inner or ("",), ".".join(inner))
        elif isinstance(part, int | float | str | bool | tuple | NoneType) and is_plain(part):
            name = ".".join(word for word in path if word)
            yield describe(name, group, part, hints[one.name], abouts.get(one.name, ""))


def is_plain(value: Any) -> bool:
    return not isinstance(value, tuple) or all(isinstance(part, int | float | str) for part in value)


def describe(name: str, group: str, value: Leaf, hint: Any, about: str) -> Field:
    """A field by the type of its flag."""
    bounds, choices, kinds = read_hint(hint)
    if isinstance(value, bool) or kinds == {bool}:
        return Field(name, group, value, about, "yes")
    if choices:
        return Field(name, group, value, about, "choice", choices=choices)
    if isinstance(value, tuple):
        return Field(name, group, value, about, "list", bounds)
    kind = "whole" if kinds == {int} else "number" if kinds and kinds <= {int, float} else "text"
    return Field(name, group, value, about, kind, bounds)


def read_hint(hint: Any) -> tuple[str, tuple[str, ...], set[type]]:
    """(range in words, choices, types) of an annotation."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        ranges = [part for part in parts[1:] if isinstance(part, Range)]
        bounds, choices, kinds = read_hint(parts[0])
        return (str(ranges[0]), (), {ranges[0].kind}) if ranges else (bounds, choices, kinds)
    if origin is Literal:
        return "", tuple(map(str, parts)), {type(part) for part in parts}
    if origin in (Union, UnionType):
        found = [read_hint(part) for part in parts if part is not NoneType]
        bounds = next((one[0] for one in found if one[0]), "")
        return bounds, tuple(word for one in found for word in one[1]), {kind for one in found for kind in one[2]}
    return "", (), {hint} if isinstance(hint, type) else set()


@cache
def read_abouts(owner: Any) -> dict[str, str]:
    """What stands under each field of a class, or beside it, as help."""
    found: dict[str, str] = {}
    for one in reversed(owner.__mro__):
        if not hasattr(one, "__dataclass_fields__"):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(one))
        except (OSError, TypeError):
            continue
        found |= read_source(source)
    return found


def read_source(source: str) -> dict[str, str]:
    """{field: help} of a class's source."""
    tree, lines = ast.parse(source).body[0], source.splitlines()
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for i, node in enumerate(tree.body):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        following = tree.body[i + 1] if i + 1 < len(tree.body) else None
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            found[node.target.id] = " ".join(str(following.value.value).split())
        elif "  # " in (beside := lines[(node.end_lineno or node.lineno) - 1]):
            found[node.target.id] = beside.partition("  # ")[2].strip()
    return found


def read_values(recipe: Recipe, sent: Mapping[str, str]) -> dict[str, Leaf]:
    """The values of a form that differ from the recipe's, checked as flags are."""
    fields = {field.name: field for field in list_fields(recipe)}
    given: dict[str, Leaf] = {}
    for name, text in sent.items():
        if name not in fields:
            change(recipe, {name: text})  # names the nearest
            raise Mistake(f"{name!r} is no value that a form can give; use the command line")
        field = fields[name]
        if text != field.show(field.default):
            given[name] = field.read(text)
    change(recipe, given)
    return given


def write_flags(recipe: Recipe, values: Mapping[str, Leaf]) -> list[str]:
    """The words of a command that give these values."""
    fields = {field.name: field for field in list_fields(recipe)}
    return [word for name, value in values.items() for word in fields[name].write(value)]
