"""Expressions that are too long, too deep or too large are refused in one line, at once."""

from __future__ import annotations

import pytest
import torch

from descend.errors import Mistake
from descend.tracing.expression import Expression, read_values
from descend.tracing.sources import find_source

X = {"x": torch.tensor(2.0, dtype=torch.float64)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("+".join(["x"] * 400), "nested more than 100 levels"),
        ("-" * 900 + "x", "nested more than 100 levels"),
        ("sin(" * 150 + "x" + ")" * 150, "nested more than 100 levels"),
        ("(" * 300 + "x" + ")" * 300, "is not an expression"),
        ("x+" + "9" * 3000, "an expression of 3,002 characters: give at most 2,000"),
        ("x\0", "is not an expression"),
    ],
)
def test_an_expression_has_limits(text: str, said: str) -> None:
    with pytest.raises(Mistake, match=said) as caught:
        find_source(text, X)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_text_that_no_file_name_can_be_is_an_expression() -> None:
    text = "x" + " + x" * 70
    assert float(find_source(text, X).fn(X["x"])) == 142


def test_a_long_name_is_told_shortly() -> None:
    with pytest.raises(Mistake, match=r"there is no walkthrough, model or run 'a{37}\.\.\.'"):
        find_source("a" * 300, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9**9**9*x", "out of range"),
        ("x*" + "9" * 400 + "**2", "int too"),
        ("1/0*x", "division by zero"),
        ("(-1)**0.5*x", "not a real number"),
        ("x@x", "at least 1D"),
    ],
)
def test_a_part_without_a_value_is_named(text: str, said: str) -> None:
    with pytest.raises(Mistake, match=f"is not understood: .*{said}"):
        Expression(text)(X["x"])


def test_whole_numbers_keep_their_value() -> None:
    assert float(Expression("2**3*x")(X["x"])) == 16


@pytest.mark.parametrize("value", ["[" * 5000 + "]" * 5000, "9" * 5000, "1j", "[[1], [2, 3]]", "'a'", "{}"])
def test_a_value_is_a_number_or_a_list_of_numbers(value: str) -> None:
    with pytest.raises(Mistake, match="is neither a number nor a list of numbers"):
        read_values([f"x={value}"])
