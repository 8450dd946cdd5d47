"""Ranges: what they hold, how they are told, and that a recipe is checked wherever it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest

from descend import recipes
from descend.errors import Mistake
from descend.kinds.saved import from_json, to_json
from descend.optim.rules import AdamW
from descend.ranges import Count, Fraction, Range, Rate, check


@dataclass(frozen=True)
class Inner:
    rate: Rate = 0.1
    shares: tuple[Fraction, ...] = (0.5,)
    most: Count | None = None


@dataclass(frozen=True)
class Outer:
    inner: Any = field(default_factory=Inner)
    way: Literal["up", "down"] = "up"
    name: str = ""
    own: float = 0.0  # no range: any number


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0, -1, 1e7, "0.1", None, True, 0.1j])
def test_a_rate_is_a_finite_number_above_zero(value: Any) -> None:
    with pytest.raises(Mistake, match=r"--inner.rate .*: must be a finite number, above 0 and at most 1,000,000"):
        check(Outer(Inner(rate=value)))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            Outer(Inner(shares=(0.5, 1.0))),
            "--inner.shares 0.5 1.0: must be a list, each a finite number, at least 0 and",
        ),
        (Outer(Inner(most=0)), "--inner.most 0: must be a whole number, at least 1 and at most 1,000,000,000 or null"),
        (Outer(Inner(most=2.0)), "--inner.most 2.0: must be a whole number"),  # type: ignore[arg-type]
        (Outer(way="left"), "--way left: must be one of up, down"),  # type: ignore[arg-type]
        (Outer(name=3), "--name 3: must be a text"),  # type: ignore[arg-type]
        (Outer(own="a"), "--own a: must be a number"),  # type: ignore[arg-type]
    ],
)
def test_the_first_wrong_field_is_told(value: Outer, said: str) -> None:
    with pytest.raises(Mistake) as caught:
        check(value)
    assert str(caught.value).startswith(said)


def test_what_is_right_passes() -> None:
    check(Outer(Inner(rate=1, shares=(), most=3), "down", "x", math.inf))


def test_a_range_is_told_in_help_and_in_words() -> None:
    assert Range(int, least=1, most=1000).metavar == "1<=INT<=1000"
    assert Range(float, above=0).metavar == "0<FLOAT"
    assert Range(float).metavar == "FLOAT"
    assert str(Range(float, least=0, below=1)) == "a finite number, at least 0 and below 1"


def test_a_recipe_is_checked_in_python_and_from_json() -> None:
    recipe = recipes.get("gpt2-pydoc")
    with pytest.raises(Mistake, match=r"^--optim.lr inf: must be"):
        replace(recipe, optim=AdamW(lr=math.inf))
    values = to_json(recipe)
    values["model"]["depth"] = -1
    with pytest.raises(Mistake, match=r"^recipe.json: .*depth.* -1.* must be a whole number, at least 1"):
        from_json(values)
    values = to_json(recipe)
    values["loop"]["steps"] = "many"
    with pytest.raises(Mistake, match=r"^recipe.json: .*steps.* must be a whole number"):
        from_json(values)
