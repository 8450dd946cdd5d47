"""Expressions: computed as Python would, and nothing but arithmetic gets through."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.errors import Mistake
from descend.tracing.expression import FUNCTIONS, Expression, order_inputs, read_values
from tests.close import close


def value(text: str, **at: float) -> torch.Tensor:
    expression = Expression(text)
    found: torch.Tensor = expression(*order_inputs(expression, {k: torch.tensor(v).double() for k, v in at.items()}))
    return found


def test_values_and_order_of_variables() -> None:
    close(value("sin(x*y) + x**2", x=1.0, y=2.0), math.sin(2.0) + 1)
    close(value("-(a - 2) / +b @ c".replace("@ c", "* c"), a=1.0, b=4.0, c=2.0), 0.5)
    close(value("exp(1) * x + pi", x=2.0), 2 * math.e + math.pi)
    assert Expression("z + sin(y) * x + z").variables == ["z", "y", "x"]


ATOMS = st.sampled_from(["x", "y", "2", "0.5"])


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.recursive(
        ATOMS,
        lambda e: (
            st.tuples(e, st.sampled_from("+-*"), e).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
            | e.map(lambda s: f"sin({s})")
        ),
        max_leaves=8,
    )
)
def test_any_expression_is_what_python_computes(text: str) -> None:
    names = {"sin": math.sin, "x": 0.7, "y": -1.3, "__builtins__": {}}
    known = {"x": torch.tensor(0.7).double(), "y": torch.tensor(-1.3).double()}
    expression = Expression(text)
    found = expression(*(known[name] for name in expression.variables))
    assert math.isclose(float(found), eval(text, names), rel_tol=1e-6, abs_tol=1e-6)


def test_tensors() -> None:
    at = read_values(["w=[[1,2],[3,4]]", "x=[1,-1]", "b = 0.5"])
    expression = Expression("sum(relu(w @ x + b))")
    close(expression(*order_inputs(expression, at)), torch.tensor(0.0).double())
    assert set(expression.names) == {"w @ x", "w @ x + b", "relu(w @ x + b)", "sum(relu(w @ x + b))"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("__import__('os').system('ls')", "only plain calls"),
        ("x.__class__", "write it with"),
        ("(lambda: 1)()", "only plain calls"),
        ("[x for x in y]", "write it with"),
        ("open(x)", "no function 'open'"),
        ("sinn(x)", "Did you mean 'sin'"),
        ("sin(x, out=y)", "only plain calls"),
        ("x if y else z", "write it with"),
        ("x < y", "write it with"),
        ("'a' + x", "write it with"),
        ("True + x", "write it with"),
        ("x[0]", "write it with"),
        ("sin(", "is not an expression"),
        ("", "is not an expression"),
    ],
)
def test_what_is_refused_before_anything_runs(text: str, said: str) -> None:
    with pytest.raises(Mistake, match=said) as caught:
        Expression(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (["x"], "write a name and a value"),
        (["2=x"], "write a name and a value"),
        (["x=one"], "'one' is neither a number nor a list"),
        (["x=[[1],[2,3]]"], "neither a number"),
        (["x=__import__('os')"], "neither a number"),
    ],
)
def test_wrong_values(at: list[str], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        read_values(at)


def test_missing_and_spare_variables() -> None:
    with pytest.raises(Mistake, match="needs a value for y: add --at y=VALUE"):
        value("x * y", x=1.0)
    with pytest.raises(Mistake, match="no variable 'z'; its variables: x"):
        value("x * 2", x=1.0, z=1.0)
    with pytest.raises(Mistake, match=r"'dot\(x\)' is not understood"):
        value("dot(x)", x=1.0)


def test_every_function_is_one_of_torch() -> None:
    x, y = torch.tensor([0.2, 0.7]).double(), torch.tensor([0.5, 0.1]).double()
    for name, function in FUNCTIONS.items():
        args = (x, y) if name in {"dot", "matmul", "maximum", "minimum", "outer"} else (x,)
        assert isinstance(function(*args), torch.Tensor), name
