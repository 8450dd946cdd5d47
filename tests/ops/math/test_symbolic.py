"""Symbolic, automatic and numerical derivatives agree; limits."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.ops.math.calculus import gradient_error
from descend.ops.math.symbolic import ACTIVATIONS, ELEMENTARY, SIGMOID, X, derivative, limit, values
from tests.close import close

pytestmark = pytest.mark.system("numerical-and-symbolic-differentiation")

POINTS = torch.tensor([-3.0, -1.2, -0.4, 0.3, 0.9, 2.5], dtype=torch.float64)  # not 0: kinks have no derivative


def slope(f: object, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x)[0]  # type: ignore[operator]


@pytest.mark.system("numerical-and-symbolic-differentiation", "three-methods")
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_three_derivatives_of_each_activation(name: str) -> None:
    """DLN: symbolic, automatic and numerical differentiation give one answer."""
    f, formula = getattr(F, name), ACTIVATIONS[name]
    close(values(formula, POINTS), f(POINTS))  # the formula is torch's function
    symbolic = values(derivative(formula), POINTS)
    close(symbolic, slope(f, POINTS))
    assert gradient_error(lambda x: f(x).sum(), POINTS, symbolic) < 1e-9


@pytest.mark.system("numerical-and-symbolic-differentiation", "rules")
@pytest.mark.parametrize(
    ("name", "f", "expected"),
    [
        ("power", lambda x: x**5, 5 * X**4),
        ("exp", torch.exp, sympy.exp(X)),
        ("log", torch.log, 1 / X),
        ("sin", torch.sin, sympy.cos(X)),
        ("cos", torch.cos, -sympy.sin(X)),
    ],
)
def test_the_derivative_table(name: str, f: object, expected: sympy.Expr) -> None:
    """VOM 2.2."""
    x = POINTS.abs()
    found = derivative(ELEMENTARY[name])
    assert sympy.simplify(found - expected) == 0
    close(values(found, x), slope(f, x))
    assert gradient_error(lambda x: f(x).sum(), x, values(found, x)) < 1e-9  # type: ignore[operator]


def test_known_forms() -> None:
    assert sympy.simplify(derivative(SIGMOID) - SIGMOID * (1 - SIGMOID)) == 0
    assert sympy.simplify(derivative(ACTIVATIONS["softplus"]) - SIGMOID) == 0
    f, g = sympy.sin(X), sympy.log(X)
    assert derivative(f * g).equals(derivative(f) * g + f * derivative(g))
    assert derivative(f / g).equals((derivative(f) * g - f * derivative(g)) / g**2)
    close(values(derivative(3 * X), POINTS), torch.full((6,), 3.0, dtype=torch.float64))  # a constant fills the shape


@pytest.mark.system("numerical-and-symbolic-differentiation", "limits")
def test_limits() -> None:
    """VOM 2.1: (x² − 1)/(x − 1) is not defined at 1 and tends to 2."""
    f = (X**2 - 1) / (X - 1)
    assert limit(f, 1) == 2.0
    near = torch.tensor([0.9, 0.99, 0.999, 1.001, 1.01, 1.1], dtype=torch.float64)
    close(values(f, near), near + 1)
    assert limit(sympy.sin(X) / X, 0) == 1.0
    assert limit(sympy.Piecewise((X, X > 0), (0, True)), 0) == 0.0
    with pytest.raises(ValueError, match="no limit"):
        limit(sympy.Abs(X) / X, 0)
    with pytest.raises(ValueError, match="no limit"):
        limit(1 / X, 0)
