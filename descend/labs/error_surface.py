"""The error surface of a neuron with two weights, and the path of gradient descent on it.

    E(w) = (1/2n) Σ (w·x_i − y_i)² = E* + ½ (w − w*)ᵀ H (w − w*)        κ = λ_max / λ_min of H

Inputs of unequal scale make bowls of chosen κ. Measured where both axes pull alike: the angle between steepest descent
and the way to the minimum; and the steps that the best gradient descent takes until the error has shrunk by 10⁶.

Systems: quadratic-error-surface
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import AtLeast, AtMost, Within
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._trials import buy_trials
from descend.optim.stability import best_descent
from descend.optim.trajectory import trajectory
from descend.theory.generalization.approximation import fit_slope
from descend.theory.generalization.error_surface import Bowl, angle, bowl_of, contour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.77",)
PRINTED = "On an elongated ellipse the gradient is almost perpendicular to the way to the minimum, not on a circle."
CLAIM = (
    "Steepest descent points to the minimum of a neuron's error only where the contours are circles; at a condition"
    " number of 100 it is nearly perpendicular to the way there, and the steps of gradient descent grow as the"
    " condition number."
)
PREDICTIONS = (
    AtMost("angle_of_a_circle", 1e-3, "Degrees, κ = 1."),
    AtLeast("angle_of_an_ellipse", 75.0, "Degrees, κ = 100; 90 would be perpendicular."),
    Within("exponent", 0.9, 1.1, "log steps against log κ, 10 to 300."),
)
SCOPE = "Two weights, squared error, exact gradients."
BUDGET = 2.0
PRICE, LEAST = 1, 1  # neurons that a second of one core buys
EXAMPLES, CONDITIONS, SHRINK = 40, (1.0, 10.0, 30.0, 100.0, 300.0), 1e-6


def draw(condition: float, random: torch.Generator) -> tuple[Bowl, Tensor, Tensor]:
    """A neuron's bowl with this condition number in a random position, its inputs and answers."""
    x = torch.linalg.qr(torch.randn(EXAMPLES, 2, generator=random, dtype=torch.float64)).Q * EXAMPLES**0.5
    turn = torch.linalg.qr(torch.randn(2, 2, generator=random, dtype=torch.float64)).Q
    x = x @ torch.diag(torch.tensor([1.0, condition**0.5], dtype=torch.float64)) @ turn
    y = x @ torch.randn(2, generator=random, dtype=torch.float64) + torch.randn(EXAMPLES, generator=random)
    return bowl_of(x, y.double()), x, y.double()


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Angles and steps by κ, and the path on the bowl with κ = 10."""
    neurons, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    angles, steps, shown = torch.zeros(len(CONDITIONS)), torch.zeros(len(CONDITIONS)), {}
    for _ in range(neurons):
        for i, condition in enumerate(CONDITIONS):
            bowl, x, y = draw(condition, random)
            values, axes = torch.linalg.eigh(bowl.hessian)
            start = axes @ values.rsqrt() + bowl.minimum  # both axes have the same share of the error
            lr, factor = best_descent(float(values[0]), float(values[1]))
            most = 5 + math.ceil(math.log(SHRINK) / math.log(max(factor, 1e-6)))
            path = trajectory(
                lambda p, lr=lr: torch.optim.SGD(p, lr),  # type: ignore[misc]
                lambda w, x=x, y=y: 0.5 * (x @ w - y).square().mean(),  # type: ignore[misc]
                start,
                most,
            ).theta
            far = (path - bowl.minimum).norm(dim=1)
            alike = axes @ torch.tensor([condition**0.5, 1.0], dtype=torch.float64)
            angles[i] += angle(bowl.hessian, alike) / neurons
            steps[i] += (far > SHRINK * far[0]).sum() / neurons
            if condition == CONDITIONS[1]:
                rings = [
                    contour(bowl, float(bowl.least + share * (bowl(start) - bowl.least))) for share in (0.1, 0.4, 1)
                ]
                shown = {"rings": [ring.tolist() for ring in rings], "path": path.tolist()}
    columns = {"condition": list(CONDITIONS), "angle": angles.tolist(), "steps": steps.tolist()}
    return {**columns, "neurons": neurons, "shown": shown}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    condition, steps = (torch.tensor(numbers[key][1:]) for key in ("condition", "steps"))
    return {
        "angle_of_a_circle": numbers["angle"][0],
        "angle_of_an_ellipse": numbers["angle"][3],
        "exponent": fit_slope(condition, steps),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Contours and path of one neuron; steps against κ."""
    fig, (left, right) = make_panels(2)
    for ring in numbers["shown"]["rings"]:
        left.plot(*zip(*ring, strict=True), color=COLOURS[5], lw=1)
    left.plot(*zip(*numbers["shown"]["path"], strict=True), "o-", ms=3, color=COLOURS[1], label="gradient descent")
    left.set_aspect("equal")
    finish(left, "error of a neuron, κ = 10", "first weight")
    left.set_ylabel("second weight")
    right.loglog(numbers["condition"], numbers["steps"], "o-", color=COLOURS[0])
    finish(right, "steps to a millionth of the distance", "condition number κ")
    return fig
