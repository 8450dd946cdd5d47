"""Wide networks train almost as their linearization does.

    f(x) = vᵀ tanh(W x + b) / √m        f_lin = f₀ + ∇f₀ᵀ (θ − θ₀)        gradient descent on (1/2n) Σ (f(x_i) − y_i)²

Network and linearization start at the same weights and take the same steps; the linearization's outputs come from the
kernel formula, which `tests/theory/generalization` shows to be exact. The gap is the root mean square of f − f_lin on
new points, over that of f − f₀.

Systems: ntk-linearization
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import AtMost
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._trials import buy_trials
from descend.theory.generalization.approximation import fit_slope
from descend.theory.generalization.linearization import kernel_descent, tangent_kernel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-A.64",)
PRINTED = "Sufficiently wide networks train almost like kernel regression with the kernel at their initial weights."
CLAIM = (
    "The gap between a trained network and its linearization shrinks with the width, about as 1/√m or faster, while"
    " both learn their examples."
)
PREDICTIONS = (
    AtMost("slope", -0.3, "log gap against log width, 16 to 1024; 0 would be no shrinking, theory says −1/2 or below."),
    AtMost("widest", 0.25, "The gap at width 1024 over that at width 16."),
    AtMost("left_over", 0.2, "Root mean square error on the examples at width 1024, over that at the start."),
)
SCOPE = "One hidden layer, 3 inputs, 16 examples, full-batch gradient descent; the kernel is well conditioned there."
BUDGET = 6.0
PRICE, LEAST = 2, 4  # networks of every width that a second of one core buys
WIDTHS, INPUTS, EXAMPLES, STEPS, RATE = (16, 64, 256, 1024), 3, 16, 400, 1.0


def network(theta: Tensor, x: Tensor) -> Tensor:
    m = len(theta) // (INPUTS + 2)
    w, b, v = theta.split([m * INPUTS, m, m])
    return (x @ w.view(m, INPUTS).T + b).tanh() @ v / m**0.5


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Gap on new points and error left on the examples, for every width."""
    nets, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    gaps: dict[int, list[float]] = {m: [] for m in WIDTHS}
    left: dict[int, list[float]] = {m: [] for m in WIDTHS}
    for _ in range(nets):
        x, new = (torch.randn(n, INPUTS, generator=random, dtype=torch.float64) for n in (EXAMPLES, 100))
        y = (x[:, 0] * x[:, 1]).sin() + x[:, 2]
        for m in WIDTHS:
            theta0 = torch.randn(m * (INPUTS + 2), generator=random, dtype=torch.float64)
            gap, error = compare(theta0, x, y, new)
            gaps[m].append(gap)
            left[m].append(error)
    columns = {"gap": gaps, "left_over": left}
    means = {key: [sum(found[m]) / nets for m in WIDTHS] for key, found in columns.items()}
    return {"width": list(WIDTHS), **means, "networks": nets}


def compare(theta0: Tensor, x: Tensor, y: Tensor, new: Tensor) -> tuple[float, float]:
    """Train the network; its distance from the linearization on new points, and the error left on the examples."""
    m = len(theta0) // (INPUTS + 2)
    w, b, v = (part.clone().requires_grad_() for part in theta0.split([m * INPUTS, m, m]))
    for _ in range(STEPS):
        f = (x @ w.view(m, INPUTS).T + b).tanh() @ v / m**0.5
        slopes = torch.autograd.grad((f - y).square().mean() / 2, (w, b, v))
        with torch.no_grad():
            for part, slope in zip((w, b, v), slopes, strict=True):
                part -= RATE * slope
    theta = torch.cat([w, b, v]).detach()
    kernel, k = (tangent_kernel(network, theta0, at, x) for at in (x, new))
    start, residual = network(theta0, new), y - network(theta0, x)
    linear = start + kernel_descent(k, kernel, residual, RATE, STEPS)
    trained = network(theta, new)
    gap = (trained - linear).norm() / (trained - start).norm()
    return float(gap), float((network(theta, x) - y).norm() / residual.norm())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    gap = numbers["gap"]
    return {
        "slope": fit_slope(torch.tensor(numbers["width"]), torch.tensor(gap)),
        "widest": gap[-1] / gap[0],
        "left_over": numbers["left_over"][-1],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """The gap against the width."""
    fig, (axes,) = make_panels(1)
    axes.loglog(numbers["width"], numbers["gap"], "o-", color=COLOURS[0], label="network − linearization, new points")
    axes.loglog(numbers["width"], numbers["left_over"], "s:", color=COLOURS[1], label="error left on the examples")
    finish(axes, "distance from the linearization", "width")
    return fig
