"""What a number may be, declared once with its type: `lr: Rate = 1e-3`.

The aliases are int or float to a reader of types. The command line shows the range in --help and refuses a flag outside
it; `check` refuses the same values in a recipe that was written in Python or read from recipe.json. NaN and infinity
are in no range.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from tyro.constructors import PrimitiveConstructorSpec

from descend.errors import Mistake


class Range(PrimitiveConstructorSpec[float]):
    """Which numbers are meant: from `least` or `above` to `most` or `below`."""

    def __init__(
        self,
        kind: type[int] | type[float],
        least: float = -math.inf,
        most: float = math.inf,
        above: float = -math.inf,
        below: float = math.inf,
    ):
        self.__dict__.update(kind=kind, least=least, most=most, above=above, below=below)
        super().__init__(
            nargs=1,
            metavar=self.sign(),
            instance_from_str=self.read,
            is_instance=self.holds,
            str_from_instance=lambda value: [str(value)],
        )

    kind: type[int] | type[float]
    least: float
    most: float
    above: float
    below: float

    def holds(self, value: object) -> bool:
        """Whether a value is of the kind and in the range; a whole number may stand where any number may."""
        if isinstance(value, bool) or not isinstance(value, int if self.kind is int else int | float):
            return False
        inside = self.least <= value <= self.most and self.above < value < self.below
        return inside and (self.kind is int or abs(value) < math.inf)

    def read(self, words: list[str]) -> float:
        """The number that a word of the command line means."""
        try:
            value = self.kind(words[0])
        except ValueError:
            raise ValueError(f"{shorten(words[0])!r}: must be {self}") from None
        if not self.holds(value):
            raise ValueError(f"{shorten(words[0])}: must be {self}")
        return value

    def sign(self) -> str:
        """For --help: 0<FLOAT, 1<=INT<=1000."""
        left, right = {self.least: "<=", self.above: "<"}, {self.most: "<=", self.below: "<"}
        low = "".join(f"{end:.12g}{sign}" for end, sign in left.items() if end > -math.inf)
        high = "".join(f"{sign}{end:.12g}" for end, sign in right.items() if end < math.inf)
        return f"{low}{'INT' if self.kind is int else 'FLOAT'}{high}"

    def __str__(self) -> str:
        """In words: a whole number, at least 1 and at most 1,000."""
        ends = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        told = " and ".join(f"{word} {end:,}" for word, end in ends.items() if abs(end) < math.inf)
        name = "a whole number" if self.kind is int else "a finite number"
        return f"{name}, {told}" if told else name

    def __repr__(self) -> str:
        return self.metavar


def shorten(text: str) -> str:
    """A value as it is told: no more than a line can hold."""
    return text if len(text) <= 40 else f"{text[:37]}..."


Count: TypeAlias = Annotated[int, Range(int, least=1, most=10**9)]
"""How many there are, or how often."""
Whole: TypeAlias = Annotated[int, Range(int, least=0, most=10**9)]
"""How many, where none is an answer."""
Width: TypeAlias = Annotated[int, Range(int, least=1, most=10**6)]
"""Numbers in a vector, maps in an image, classes, heads."""
Length: TypeAlias = Annotated[int, Range(int, least=1, most=10**7)]
"""Tokens in a row, words of a vocabulary."""
Depth: TypeAlias = Annotated[int, Range(int, least=1, most=1000)]
"""Layers, or anything else that is built one by one."""
Few: TypeAlias = Annotated[int, Range(int, least=0, most=1000)]
"""As a depth, where none is an answer."""
Side: TypeAlias = Annotated[int, Range(int, least=1, most=16384)]
"""Pixels along an edge."""
SideOrAny: TypeAlias = Annotated[int, Range(int, least=0, most=16384)]
"""Pixels along an edge; 0: as it is."""
Token: TypeAlias = Annotated[int, Range(int, least=0, most=10**7)]
"""The number of a token."""
Seed: TypeAlias = Annotated[int, Range(int, least=0, most=2**63 - 1)]
Rate: TypeAlias = Annotated[float, Range(float, above=0, most=10**6)]
"""A learning rate."""
Positive: TypeAlias = Annotated[float, Range(float, above=0)]
NonNegative: TypeAlias = Annotated[float, Range(float, least=0)]
Finite: TypeAlias = Annotated[float, Range(float)]
Share: TypeAlias = Annotated[float, Range(float, least=0, most=1)]
"""From none to all."""
Fraction: TypeAlias = Annotated[float, Range(float, least=0, below=1)]
"""From none to nearly all: dropout, momentum, data that is held out."""
PositiveShare: TypeAlias = Annotated[float, Range(float, above=0, most=1)]
"""From a little to all."""
Between: TypeAlias = Annotated[float, Range(float, above=0, below=1)]
"""Neither none nor all."""


def check(value: object, part: str = "") -> None:
    """Refuse a recipe, or a part of one, with the first field that is of a wrong type or outside its range."""
    for wrong in find_wrong(value, part):
        raise Mistake(wrong)


def find_wrong(value: object, name: str) -> Iterator[str]:
    """What is wrong with the fields of a dataclass, with the flag of each: --optim.lr inf: must be ..."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return
    for field, hint in read_hints(type(value)).items():
        part = getattr(value, field)
        bare = "" if field == "loop" else field.replace("_", "-")
        flag = ".".join(filter(None, (name, bare)))
        expected = describe_wrong(part, hint)
        if expected:
            yield f"--{flag} {shorten(format_value(part))}: must be {expected}"
        for inner in part if isinstance(part, tuple | list) else (part,):
            yield from find_wrong(inner, flag)


@cache
def read_hints(kind: type) -> dict[str, Any]:
    """The type of every field of a dataclass, with its range."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def describe_wrong(value: object, hint: Any) -> str:
    """What should be there, in words; nothing if it is there."""
    if get_origin(hint) is Annotated:
        found = find_range(hint)
        if found is None:
            return describe_wrong(value, get_args(hint)[0])
        return "" if found.holds(value) else str(found)
    options = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        wrong = [describe_wrong(value, option) for option in options]
        return " or ".join(wrong) if all(wrong) else ""
    if get_origin(hint) is Literal:
        return "" if value in options else f"one of {', '.join(map(str, options))}"
    if get_origin(hint) is tuple:
        return describe_wrong_tuple(value, options)
    return describe_wrong_plain(value, hint)


def describe_wrong_tuple(value: object, options: tuple[Any, ...]) -> str:
    if not isinstance(value, tuple | list):
        return "a list"
    each = options[:1] * len(value) if options[1:] == (...,) else options
    if len(value) != len(each):
        return f"a list of {len(each)}"
    wrong = [found for item, option in zip(value, each, strict=True) if (found := describe_wrong(item, option))]
    return f"a list, each {wrong[0]}" if wrong else ""


def describe_wrong_plain(value: object, hint: Any) -> str:
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", NoneType: "null"}
    if hint not in names:
        right = not (isinstance(hint, type) and dataclasses.is_dataclass(hint)) or isinstance(value, hint)
        return "" if right else f"a {hint.__name__}"
    right = isinstance(value, int | float if hint is float else hint)
    return "" if right and (hint is bool or not isinstance(value, bool)) else names[hint]


def find_range(hint: Any) -> Range | None:
    """The range of an annotated number."""
    return next((part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Range)), None)


def format_value(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
