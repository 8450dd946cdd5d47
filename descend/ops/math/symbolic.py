"""Derivatives and limits as formulas, by sympy: the third way beside finite differences and autograd.

    (xⁿ)' = n xⁿ⁻¹    (eˣ)' = eˣ    (ln x)' = 1/x    (sin x)' = cos x    (cos x)' = −sin x
    σ(x) = 1/(1 + e⁻ˣ),  σ' = σ(1 − σ)        tanh' = 1 − tanh²        softplus' = σ        GELU(x) = x Φ(x)

DLN only names symbolic differentiation; the formulas here are sympy's, written in the one variable `X`.

Systems: numerical-and-symbolic-differentiation
"""

from __future__ import annotations

import sympy
import torch
from sympy import Expr, Rational, erf, exp, log, sqrt, tanh
from torch import Tensor

X = sympy.Symbol("x", real=True)

SIGMOID = 1 / (1 + exp(-X))
ACTIVATIONS: dict[str, Expr] = {
    "sigmoid": SIGMOID,
    "tanh": tanh(X),
    "relu": sympy.Piecewise((X, X > 0), (0, True)),
    "leaky_relu": sympy.Piecewise((X, X > 0), (Rational(1, 100) * X, True)),
    "elu": sympy.Piecewise((X, X > 0), (exp(X) - 1, True)),
    "softplus": log(1 + exp(X)),
    "silu": X * SIGMOID,
    "gelu": X * (1 + erf(X / sqrt(2))) / 2,
}
"""Activations as formulas, under torch's names; those with a kink at 0 are written as two pieces."""

ELEMENTARY: dict[str, Expr] = {
    "power": X**5,
    "exp": exp(X),
    "log": log(X),
    "sin": sympy.sin(X),
    "cos": sympy.cos(X),
}
"""The derivative table of VOM 2.2, for x > 0."""


def derivative(expression: Expr) -> Expr:
    """The formula of d/dx."""
    return sympy.diff(expression, X)


def limit(expression: Expr, point: float) -> float:
    """lim_{x→point}, from both sides; an expression without a two-sided limit is an error."""
    at = sympy.nsimplify(point)
    below, above = (sympy.limit(expression, X, at, side) for side in "-+")
    if below != above:
        raise ValueError(f"{expression} has no limit at {point}: {below} from below, {above} from above")
    return float(above)


def values(expression: Expr, x: Tensor) -> Tensor:
    """The formula evaluated at every number of x."""
    found = sympy.lambdify(X, expression, "scipy")(x.detach().numpy())
    return torch.as_tensor(found, dtype=x.dtype).expand(x.shape)
