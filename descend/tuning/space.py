"""What may vary in a search: `--search NAME=WHERE`, a flag of the recipe and where its value may lie.

    optim.lr=1e-4..1e-1          evenly between the two
    optim.lr=1e-4..1e-1:log      evenly over the orders of magnitude
    optim.lr=1e-4..1e-1:log:4    four values, evenly spaced (a grid of a range without a count has five)
    model.width=32,64,128        one of these
    model.hidden="32,64 64"      one of these; a value of several words as it is typed after the flag

A range of a flag that takes whole numbers gives whole numbers. `loop.batch` is another name of `batch`.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from descend.classic.search import Choice, LogUniform, LogWhole, Prior, Uniform, Whole
from descend.errors import Mistake, nearest
from descend.kinds.recipe import Recipe
from descend.kinds.saved import class_name

POINTS = 5  # values that a range gives to a grid
DIGITS = 4  # significant digits of a suggested value, so that the command that repeats it can be typed
SUPPRESSED = "Suppress["  # in the type of a field that is no flag


@dataclass(frozen=True)
class Dimension:
    """A flag that varies."""

    name: str
    prior: Prior
    several: bool = False
    """Whether the flag takes several words."""

    @property
    def log(self) -> bool:
        return isinstance(self.prior, LogUniform | LogWhole)

    def list_values(self) -> list[Any]:
        """The values that a grid tries."""
        return [shorten(value, self.prior) for value in self.prior.points(POINTS)]

    def describe(self) -> dict[str, Any]:
        """As JSON: the name with its choices, or its range."""
        if isinstance(self.prior, Choice):
            return {"name": self.name, "choices": list(self.prior.values)}
        assert isinstance(self.prior, Uniform | LogUniform | Whole | LogWhole)
        return {"name": self.name, "low": self.prior.low, "high": self.prior.high, "log": self.log}


def shorten(value: Any, prior: Prior) -> Any:
    """A number with few digits that still lies in its range; anything else as it is."""
    if not isinstance(value, float) or not isinstance(prior, Uniform | LogUniform):
        return value
    return min(max(float(f"{value:.{DIGITS}g}"), prior.low), prior.high)


def list_leaves(recipe: Recipe) -> dict[str, Any]:
    """Every flag of a recipe, without its dashes, and its value; a part's flags begin with the part's name."""
    found: dict[str, Any] = {}
    for f in dataclasses.fields(recipe):
        if SUPPRESSED not in str(f.type):
            found |= _leaves(getattr(recipe, f.name), "" if f.name == "loop" else f.name)
    return found


def _leaves(value: Any, name: str) -> dict[str, Any]:
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return {name.replace("_", "-"): value}
    found: dict[str, Any] = {}
    for f in dataclasses.fields(value):
        if SUPPRESSED in str(f.type):
            continue
        found |= _leaves(getattr(value, f.name), f"{name}.{f.name}" if name else f.name)
    return found


def format_flags(values: dict[str, Any]) -> list[str]:
    """Values as they are typed: {"optim.lr": 0.01, "model.hidden": (32, 32)} -> --optim.lr 0.01 --model.hidden 32 32"""
    words: list[str] = []
    for name, value in values.items():
        if isinstance(value, bool):
            part, dot, leaf = name.rpartition(".")
            words.append(f"--{part}{dot}{'' if value else 'no-'}{leaf}")
        else:
            words += [f"--{name}", *map(str, value if isinstance(value, tuple | list) else [value])]
    return words


def type_values(dimensions: list[Dimension], values: dict[str, Any]) -> list[str]:
    """The flags of a trial."""
    return format_flags({d.name: values[d.name].split() if d.several else values[d.name] for d in dimensions})


def find_difference(recipe: Recipe, other: Recipe) -> list[str]:
    """The flags that make the other recipe from this one."""
    model: list[str] = []
    config: Any = type(other.model)
    if config is not type(recipe.model):
        model, recipe = ["--model", class_name(config)], dataclasses.replace(recipe, model=config())
    before = list_leaves(recipe)
    return model + format_flags({n: value for n, value in list_leaves(other).items() if value != before.get(n)})


def choose_space(recipe: Recipe) -> list[str]:
    """Every learning rate, an order of magnitude to both sides, and half and twice the batch."""
    known = list_leaves(recipe)
    rates = [name for name, value in known.items() if name.rpartition(".")[2] == "lr" and value > 0]
    asked = [f"{name}={known[name] / 10:.3g}..{known[name] * 10:.3g}:log" for name in rates]
    batch, micro = recipe.loop.batch, recipe.loop.accumulate
    sizes = [size for size in (batch // 2, batch, 2 * batch) if size and size % micro == 0]
    return [*asked, f"batch={','.join(map(str, sizes))}"] if len(sizes) > 1 else asked


def read_space(asked: list[str], recipe: Recipe) -> list[Dimension]:
    """The dimensions that the flags describe."""
    known = list_leaves(recipe)
    found = [read_dimension(text, known) for text in asked]
    names = [d.name for d in found]
    for name in names:
        if names.count(name) > 1:
            raise Mistake(f"--search {name}: given twice; list all its values in one")
    if not found:
        raise Mistake("there is nothing to search; give --search NAME=LOW..HIGH or NAME=A,B,C")
    return found


def read_dimension(text: str, known: dict[str, Any]) -> Dimension:
    """One `NAME=WHERE`."""
    given, equals, where = text.partition("=")
    name = given.strip().lstrip("-").replace("_", "-").removeprefix("loop.")
    if not equals or not where.strip():
        raise Mistake(f"--search {text!r}: write NAME=LOW..HIGH, NAME=LOW..HIGH:log or NAME=A,B,C")
    if name not in known:
        leaf = name.rpartition(".")[2]
        same = [flag for flag in known if flag.rpartition(".")[2] == leaf]
        hint = f" Did you mean '{same[0]}'?" if same else nearest(name, known)
        raise Mistake(f"--search {given}: the recipe has no flag --{name}.{hint}")
    try:
        if ".." in where:
            return read_range(name, where, known[name])
        listed = tuple(read_word(w.strip(), known[name]) for w in where.split(","))
        return Dimension(name, Choice(listed), isinstance(known[name], tuple | list))
    except ValueError as error:
        raise Mistake(f"--search {text}: {error}") from None


def read_range(name: str, where: str, value: Any) -> Dimension:
    """LOW..HIGH[:log][:COUNT]"""
    ends, *marks = where.split(":")
    low, high = (read_number(end) for end in ends.split("..", 1))
    log = "log" in marks
    counts = [mark for mark in marks if mark != "log"]
    if len(counts) > 1 or any(not count.isdigit() or int(count) < 2 for count in counts):
        raise ValueError(f"{counts[0]!r} after the range is neither log nor a number of values from 2 on")
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and not isinstance(value, float):
        raise ValueError(f"--{name} is {value!r}, not a number; list its values: {name}=A,B,C")
    prior: Prior
    if whole:
        if low % 1 or high % 1:
            raise ValueError(f"--{name} takes whole numbers")
        prior = LogWhole(int(low), int(high)) if log else Whole(int(low), int(high))
    else:
        prior = LogUniform(low, high) if log else Uniform(low, high)
    if counts:
        return Dimension(name, Choice(tuple(shorten(v, prior) for v in prior.points(int(counts[0])))))
    return Dimension(name, prior)


def read_number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value


def read_word(text: str, value: Any) -> Any:
    """A listed value as the flag takes it: a whole number, a number, yes or no, or the words as they are."""
    if isinstance(value, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text.lower() == "true"
    if isinstance(value, int):
        if read_number(text) % 1:
            raise ValueError(f"{text!r} is not a whole number")
        return int(read_number(text))
    if isinstance(value, float):
        return read_number(text)
    return text
