"""All optimizers on two hard surfaces, counted in gradients.

    valley   Rosenbrock's in 4 dimensions: narrow, curved, minimum 0 at (1, 1, 1, 1)
    bowl     ½ θᵀ H θ with 8 curvatures from 1 to 100 in directions turned at random

The bowl is turned because a method with one step size per coordinate sees every axis-aligned bowl as a round one.
Each optimizer runs with its learning rate from a small grid, and its best run counts. The price is the gradient: a
method that evaluates the closure five times in a step has paid for five.

Systems: gradient-descent, hessian-free-optimization, conjugate-gradient, lbfgs
"""

from __future__ import annotations

import math
from contextlib import suppress
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.labs._evidence import AtMost, Below
from descend.optim import book_rules as book
from descend.optim import rules
from descend.optim.trajectory import quadratic, rosenbrock, trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.108", "DLN-A.109", "DLN-A.112", "DLN-A.92")
PRINTED = (
    "Curvature methods (L-BFGS, conjugate gradients, Hessian-free) need far fewer steps; momentum"
    " accelerates (no numbers)."
)
CLAIM = (
    "After 300 gradients, on a narrow curved valley and on a stiff bowl, the typical method that uses curvature"
    " (L-BFGS, conjugate gradients, Hessian-free) is at least a thousand times lower than the typical first-order"
    " method; among those, momentum is lower than plain gradient descent."
)
PREDICTIONS = (
    AtMost(
        "curvature over others",
        1e-3,
        "The median end of curvature methods over that of first-order ones, the worse surface.",
    ),
    Below(
        "momentum over plain",
        1,
        "The worse momentum method's end over that of gradient descent, the worse surface.",
    ),
)
SCOPE = (
    "Rosenbrock's valley in 4 dimensions and a turned bowl of 8, without noise, each method with"
    " its best rate of a grid."
)
RACERS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "gradient descent": ("plain", tuple(rules.SGD(lr, 0.0) for lr in (5e-4, 2e-3, 1e-2))),
    "window of 4": ("plain", tuple(book.GradientWindow(lr, 4) for lr in (5e-4, 2e-3, 1e-2))),
    "heavy ball": ("momentum", tuple(book.HeavyBall(lr) for lr in (5e-4, 2e-3, 1e-2))),
    "Nesterov": ("momentum", tuple(book.Nesterov(lr) for lr in (5e-4, 2e-3, 1e-2))),
    "local gains": ("adaptive", tuple(book.LocalGains(lr) for lr in (2e-4, 5e-4, 2e-3))),
    "Rprop": ("adaptive", tuple(rules.Rprop(lr) for lr in (0.001, 0.01, 0.1))),
    "RMSProp": ("adaptive", tuple(book.RMSPropInside(lr) for lr in (0.003, 0.01, 0.03))),
    "Adagrad": ("adaptive", tuple(book.AdagradInside(lr) for lr in (0.1, 0.3, 1.0))),
    "Adam": ("adaptive", tuple(rules.Adam(lr) for lr in (0.01, 0.03, 0.1))),
    "Lion": ("adaptive", tuple(book.Lion(lr, weight_decay=0.0) for lr in (0.003, 0.01, 0.03))),
    "Polak-Ribière": ("curvature", (book.PolakRibiere(inner=1),)),
    "Fletcher-Reeves": ("curvature", (book.FletcherReeves(inner=1),)),
    "L-BFGS": ("curvature", (rules.LBFGS(),)),
    "Hessian-free": ("curvature", (book.HessianFree(inner=8),)),
}
COLORS = {"plain": "0.55", "momentum": "#2b6cd8", "adaptive": "#3a9a5b", "curvature": "#d66820"}
FLOOR = 1e-16
BUDGET = 5.0
PRICE = 60  # gradients per run that a second of one core buys


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The lowest loss seen after each gradient, for every optimizer on both surfaces."""
    gradients = max(20, round(PRICE * budget))
    random = torch.Generator().manual_seed(seed)
    turn, _ = torch.linalg.qr(torch.randn(8, 8, generator=random, dtype=torch.float64))
    spread = torch.logspace(0, 2, 8, dtype=torch.float64)
    surfaces = {
        "valley": (rosenbrock, torch.tensor([-1.2, 1.0, -1.2, 1.0], dtype=torch.float64)),
        "bowl": (quadratic(turn @ spread.diag() @ turn.T), torch.randn(8, generator=random, dtype=torch.float64)),
    }
    curves = {
        place: {name: best_run(grid, loss, start, gradients) for name, (_, grid) in RACERS.items()}
        for place, (loss, start) in surfaces.items()
    }
    return {
        "optimizer": list(RACERS),
        "kind": [kind for kind, _ in RACERS.values()],
        **{f"{place}_end": [curve[-1] for curve in found.values()] for place, found in curves.items()},
        "gradients": gradients,
        "curves": curves,
    }


def best_run(grid: tuple[Any, ...], loss: Any, start: Tensor, gradients: int) -> list[float]:
    """The curve that ends lowest among the learning rates."""
    return min((run(rule, loss, start, gradients) for rule in grid), key=lambda curve: curve[-1])


def run(rule: Any, loss: Any, start: Tensor, gradients: int) -> list[float]:
    """The lowest loss seen up to each gradient, relative to the first."""
    seen: list[float] = []

    def counted(theta: Tensor) -> Tensor:
        if len(seen) >= gradients:
            raise Enough
        value: Tensor = loss(theta)
        seen.append(float(value.detach()))
        return value

    with suppress(Enough):
        trajectory(lambda p: rule.build(nn.ParameterList(p)), counted, start, gradients)
    finite = [value if math.isfinite(value) else math.inf for value in seen]
    lowest = torch.tensor(finite, dtype=torch.float64).cummin(0).values / finite[0]
    padded = [max(value, FLOOR) for value in lowest.tolist()]
    return padded + padded[-1:] * (gradients - len(padded))


class Enough(Exception):
    """The gradients are spent."""


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    ratios = [compare(numbers, place) for place in ("valley", "bowl")]
    return {
        "curvature over others": max(curved for curved, _ in ratios),
        "momentum over plain": max(momentum for _, momentum in ratios),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["gradients"] < 250 else 0.0


def compare(numbers: dict[str, Any], place: str) -> tuple[float, float]:
    """Ends on a surface: of curvature methods over first-order ones, and of momentum over gradient descent."""
    ends = dict(zip(numbers["optimizer"], numbers[f"{place}_end"], strict=True))
    kinds = dict(zip(numbers["optimizer"], numbers["kind"], strict=True))
    curved, first = ([end for name, end in ends.items() if (kinds[name] == "curvature") is is_curved]
                     for is_curved in (True, False))  # fmt: skip
    plain = ends["gradient descent"]
    return median(curved) / median(first), max(ends["heavy ball"], ends["Nesterov"]) / plain


def figure(numbers: dict[str, Any]) -> Figure:
    """One panel a surface: the lowest loss against gradients, one line an optimizer."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(12, 5), layout="constrained")
    for axes, place in zip(fig.subplots(1, 2), ("valley", "bowl"), strict=True):
        race(axes, numbers, place)
    return fig


def race(axes: Axes, numbers: dict[str, Any], place: str) -> None:
    """The curves on one surface, colour by kind."""
    styles = ("-", "--", ":", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))
    count: dict[str, int] = {}
    for name, kind in zip(numbers["optimizer"], numbers["kind"], strict=True):
        style = styles[count.get(kind, 0)]
        count[kind] = count.get(kind, 0) + 1
        axes.plot(numbers["curves"][place][name], color=COLORS[kind], ls=style, lw=1.6, label=name)
    axes.set_yscale("log")
    axes.set_xlabel("gradients")
    axes.set_title(f"{place}: lowest loss, of the first", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False, fontsize=8, ncols=2)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
