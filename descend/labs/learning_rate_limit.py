"""The largest learning rate, and what momentum accelerates.

    gradient descent at curvature c:   error factor |1 − α c|, so it converges for α < 2/c and is fastest at 1/c
    curvatures from 1 to κ, tuned:     steps to a given error ~ κ for gradient descent, ~ √κ for the heavy ball

The factor is measured by running the optimizer at rates from below 0 to beyond 2/c; the steps by running both, tuned
as the closed forms say, until the error has shrunk by 10⁶. A third part adds noise of one size to every gradient: the
tuned heavy ball, so much faster without noise, then ends farther from the minimum than gradient descent. Acceleration
is proven for exact gradients only (DLN, "Why does momentum work").

Systems: gradient-descent, momentum
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import AtMost, Within
from descend.optim.momentum import HeavyBall
from descend.optim.stability import best_descent, best_heavy_ball, contraction
from descend.optim.trajectory import quadratic, trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-A.34", "VOM-A.50", "DLN-A.92")
PRINTED = (
    "Larger rates are faster but risk divergence; on θ² descent converges for 0 < η < 1; heavy-ball"
    " acceleration is proven for quadratics only."
)
CLAIM = (
    "Gradient descent on a quadratic of curvature c converges for learning rates below 2/c and for no others. Tuned for"
    " curvatures from 1 to κ it takes a number of steps that grows as κ; the tuned heavy ball takes √κ."
)
PREDICTIONS = (
    AtMost(
        "factor off",
        1e-6,
        "The largest relative distance of a measured error factor from |1 − αc|.",
    ),
    AtMost("misjudged rates", 0, "Rates at which convergence and 0 < αc < 2 part."),
    Within("exponent plain", 0.85, 1.15, "The power of κ with which gradient descent's steps grow."),
    Within(
        "exponent heavy ball",
        0.35,
        0.65,
        "The same for the tuned heavy ball; near 1 it would not accelerate.",
    ),
)
SCOPE = (
    "Quadratics, exact gradients; with noise the tuned heavy ball ends farther from the minimum,"
    " which is told beside it."
)
CURVATURE = 4.0
SHARES = (-0.1, 0.1, 0.5, 0.9, 1.0, 1.1, 1.5, 1.9, 1.99, 2.0, 2.01, 2.1)  # α c
CONDITIONS = (10, 30, 100, 300)
SHRINK = 1e-6
BUDGET = 3.0
PRICE = 1500  # noisy steps that a second of one core buys


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Factors against α c, steps against κ, and the errors that noise leaves; the budget buys noisy steps."""
    torch.manual_seed(seed)
    factors = [factor_at(share / CURVATURE) for share in SHARES]
    plain, ball = zip(*(steps_to_target(float(kappa)) for kappa in CONDITIONS), strict=True)
    noisy = max(200, round(PRICE * budget))
    return {
        "rate_times_curvature": list(SHARES),
        "factor": factors,
        "predicted": [abs(contraction(share / CURVATURE, CURVATURE)) for share in SHARES],
        "condition": list(CONDITIONS),
        "steps_plain": list(plain),
        "steps_heavy_ball": list(ball),
        "exponent_plain": exponent(plain),
        "exponent_heavy_ball": exponent(ball),
        "noisy_steps": noisy,
        "noise_left_plain": noise_left(noisy, momentum=False),
        "noise_left_heavy_ball": noise_left(noisy, momentum=True),
    }


def factor_at(lr: float) -> float:
    """|θ| after a step over |θ| before it, the mean of 20 steps of gradient descent."""
    bowl, start = quadratic(torch.tensor([[CURVATURE]], dtype=torch.float64)), torch.ones(1, dtype=torch.float64)
    if lr < 0:  # no optimizer takes a negative rate: descend on −E instead
        path = trajectory(lambda p: torch.optim.SGD(p, -lr), lambda t: -bowl(t), start, 20)
    else:
        path = trajectory(lambda p: torch.optim.SGD(p, lr), bowl, start, 20)
    end = float(path.theta[-1].abs())
    return end ** (1 / 20)


def steps_to_target(kappa: float) -> tuple[int, int]:
    """Steps of gradient descent and of the heavy ball until the error is a millionth."""
    bowl = quadratic(torch.diag(torch.tensor([1.0, kappa], dtype=torch.float64)))
    start = torch.ones(2, dtype=torch.float64)
    lr, factor = best_descent(1.0, kappa)
    ball_lr, beta, ball_factor = best_heavy_ball(1.0, kappa)
    paths = (
        trajectory(lambda p: torch.optim.SGD(p, lr), bowl, start, enough(factor)).theta,
        trajectory(lambda p: HeavyBall(p, ball_lr, beta), bowl, start, 2 * enough(ball_factor)).theta,
    )
    counts = [int((path.norm(dim=1) > SHRINK * start.norm()).sum()) for path in paths]
    return counts[0], counts[1]


def enough(factor: float) -> int:
    """Steps after which this factor per step has surely reached the target."""
    return math.ceil(math.log(SHRINK) / math.log(factor)) + 20


def exponent(steps: tuple[int, ...]) -> float:
    """The slope of log steps against log κ."""
    x, y = (torch.tensor(values, dtype=torch.float64).log() for values in (CONDITIONS, steps))
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / x.square().sum())


def noise_left(steps: int, momentum: bool) -> float:
    """Root mean square error in the second half of a run with noisy gradients, κ = 100, tuned as without noise."""
    lr, _ = best_descent(1.0, 100.0)
    ball_lr, beta, _ = best_heavy_ball(1.0, 100.0)
    bowl = quadratic(torch.diag(torch.tensor([1.0, 100.0], dtype=torch.float64)))

    def noisy(theta: Tensor) -> Tensor:
        return bowl(theta) + torch.randn(2, dtype=torch.float64) @ theta

    start = torch.zeros(2, dtype=torch.float64)
    path = trajectory(
        (lambda p: HeavyBall(p, ball_lr, beta)) if momentum else (lambda p: torch.optim.SGD(p, lr)), noisy, start, steps
    )
    return float(path.theta[steps // 2 :].square().sum(1).mean().sqrt())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    rows = list(zip(numbers["rate_times_curvature"], numbers["factor"], numbers["predicted"], strict=True))
    return {
        "factor off": max(max(0.0, abs(a - b) - 1e-9) / max(abs(a), abs(b), 1e-9) for _, a, b in rows),
        "misjudged rates": sum((found < 1 - 1e-9) != (0 < share < 2) for share, found, _ in rows),
        "exponent plain": numbers["exponent_plain"],
        "exponent heavy ball": numbers["exponent_heavy_ball"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Left the factor against α c with the limit at 2; right the steps against κ."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(10, 3.9), layout="constrained")
    left, right = fig.subplots(1, 2)
    x = numbers["rate_times_curvature"]
    left.axvspan(0, 2, color="#2b6cd8", alpha=0.08, label="converges")
    left.plot(x, numbers["predicted"], color="0.6", lw=5, alpha=0.5, label="|1 − α c|")
    left.plot(x, numbers["factor"], "o", color="#d66820", ms=5, label="measured")
    left.axhline(1, color="0.6", ls=":")
    left.set_xlabel("α c")
    left.set_title("error factor of one step", fontsize=11, loc="left", fontweight="bold")
    for name, color, label in (
        ("plain", "#d66820", "gradient descent"),
        ("heavy_ball", "#2b6cd8", "heavy ball"),
    ):
        power = numbers[f"exponent_{name}"]
        right.loglog(
            numbers["condition"], numbers[f"steps_{name}"], "o-", color=color, ms=5, label=f"{label}, κ^{power:.2f}"
        )
    right.set_xlabel("condition number κ")
    right.set_title("steps to a millionth of the error", fontsize=11, loc="left", fontweight="bold")
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=9)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
