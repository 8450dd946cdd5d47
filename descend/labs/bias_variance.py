"""Bias and variance of polynomials of growing degree, by retraining on many datasets.

    E_D (f̂ − f*)² = (E_D f̂ − f*)² + E_D (f̂ − E_D f̂)²           f* = sin(πx) + x/2 on [−1, 1],  Y = f* + ε

Every dataset has 30 examples with fresh noise and fresh inputs, one in each thirtieth of the range: with wholly random
inputs a dataset with a hole now and then decides the variance of high degrees alone. Terms are means over points in the
middle 90% of the range.

Systems: bias-variance
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import AtLeast, AtMost, Within
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._trials import buy_trials
from descend.theory.generalization.risk import split_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.123", "MF-A.66")
PRINTED = "Squared error = bias² + variance + noise; more complexity lowers the bias and raises the variance."
CLAIM = (
    "Over datasets, bias² and variance add up to the mean squared error exactly. From degree 0 to 12 the bias of a"
    " polynomial falls, its variance grows and the error is U-shaped; averaging ten predictors divides the variance by"
    " ten and leaves the bias."
)
PREDICTIONS = (
    AtMost("identity", 1e-9, "The largest difference between the sum of the terms and the error, over the error."),
    AtLeast("bias_falls", 10.0, "bias² at degree 0 over that at degree 7."),
    AtLeast("variance_grows", 5.0, "Variance at degree 12 over that at degree 1."),
    AtLeast("left_of_the_u", 2.0, "Error at degree 0 over the lowest."),
    AtLeast("right_of_the_u", 1.5, "Error at degree 12 over the lowest; near 1 there would be no U."),
    Within("best_degree", 2, 8, "The degree of the lowest error lies inside."),
    Within("averaged", 0.08, 0.125, "Variance of averages of ten over that of one: 1/10."),
)
SCOPE = "Polynomials in one input, least squares, 30 examples, σ = 0.3. In networks the variance need not keep growing."
BUDGET = 4.0
PRICE, LEAST = 2500, 200  # datasets that a second of one core buys
DEGREES, EXAMPLES, NOISE = range(13), 30, 0.3


def truth(x: Tensor) -> Tensor:
    return (math.pi * x).sin() + x / 2


def legendre(x: Tensor, degree: int) -> Tensor:
    """The first degree + 1 Legendre polynomials at x (..): (.., degree + 1)."""
    rows = [torch.ones_like(x), x]
    for k in range(1, degree):
        rows.append(((2 * k + 1) * x * rows[-1] - k * rows[-2]) / (k + 1))
    return torch.stack(rows[: degree + 1], -1)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Mean bias², variance and error of every degree, and the variance of averages of ten predictors."""
    sets, random = 10 * math.ceil(buy_trials(budget, PRICE, LEAST) / 10), torch.Generator().manual_seed(seed)
    place = torch.arange(EXAMPLES) + torch.rand(sets, EXAMPLES, generator=random, dtype=torch.float64)
    x = 2 * place / EXAMPLES - 1
    y = truth(x) + NOISE * torch.randn(sets, EXAMPLES, generator=random, dtype=torch.float64)
    at = torch.linspace(-0.9, 0.9, 91, dtype=torch.float64)
    columns: dict[str, list[float]] = {"degree": list(DEGREES), "bias_squared": [], "variance": [], "error": []}
    identity, averaged = 0.0, []
    for degree in DEGREES:
        w = torch.linalg.lstsq(legendre(x, degree), y[..., None]).solution[..., 0]
        predictions = w @ legendre(at, degree).T
        parts, error = split_error(predictions, truth(at)), (predictions - truth(at)).square().mean(0)
        identity = max(identity, float(((parts.error - error) / error).abs().max()))
        ten = split_error(predictions.view(-1, 10, len(at)).mean(1), truth(at))
        averaged.append(float(ten.variance.mean() / parts.variance.mean()))
        for key, value in zip(("bias_squared", "variance", "error"), (*parts[:2], error), strict=True):
            columns[key].append(float(value.mean()))
    return {**columns, "averaged": averaged, "identity": identity, "datasets": sets}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    bias, variance, error = (numbers[key] for key in ("bias_squared", "variance", "error"))
    return {
        "identity": numbers["identity"],
        "bias_falls": bias[0] / bias[7],
        "variance_grows": variance[12] / variance[1],
        "left_of_the_u": error[0] / min(error),
        "right_of_the_u": error[12] / min(error),
        "best_degree": float(error.index(min(error))),
        "averaged": sum(numbers["averaged"]) / len(numbers["averaged"]),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """The terms against the degree."""
    fig, (axes,) = make_panels(1)
    for key, label, colour in (
        ("bias_squared", "bias²", COLOURS[0]),
        ("variance", "variance", COLOURS[1]),
        ("error", "error without noise", "black"),
    ):
        axes.semilogy(numbers["degree"], numbers[key], "o-", color=colour, ms=4, label=label)
    finish(axes, "what the error is made of", "degree")
    return fig
