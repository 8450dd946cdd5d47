"""Too-early decay: turning the learning rate down soon pays at once, and is paid for later.

    L(θ) = ½ Σ_j λ_j θ_j²          θ ← θ − η_t (λ θ + σ √λ ξ),  ξ ~ N(0, 1)       η cut to a tenth at one step
    noise      settles at about η σ² λ / 4 in each direction: a cut lowers it within 1/(η λ) steps of the new rate
    distance   falls as (1 − η λ_j)^t: after a cut the flat directions need ten times as many steps

Stochastic gradient descent on a quadratic loss with steep and flat directions (λ = 1 and 0.01), its noise in proportion
to the curvature as that of a mini-batch of least squares is, the same noise for every schedule. Reported: the mean loss
on the way and at the end, for a cut early, at a fifth, half and four fifths of the run, and for no cut. DLN gives the
warning without numbers; here it is: the early cut drops at once below the run without a cut, as the noise of the steep
directions fades, and ends above every later cut, since the flat ones have hardly been descended.

The claim needs such a problem. With 16 curvatures spread evenly from 0.01 to 1 on a logarithmic scale and noise 0.3 of
one size in every direction (start 3), 200 runs showed no drop by step 100 (−0.007 ± 0.007); the early cut still ended
above those at 200 and 500, but below the one at 800, which came too late for the flat directions' noise to fade.

Systems: elementary-decay-schedules
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import Above
from descend.optim.schedules import step_decay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.86",)
PRINTED = "Turning the learning rate down too early gives a quick drop, then slow learning."
CLAIM = (
    "Turning the learning rate down too early gives a quick drop of the loss and slow learning after it: the run ends"
    " worse than one that is turned down later."
)
PREDICTIONS = (
    Above("early drop", 4, "How much lower the early cut is soon after it, in standard errors.", refuted=-4),
    Above(
        "costs in the end",
        4,
        "How much higher it ends than every later cut, in standard errors, the least.",
        refuted=-4,
    ),
)
SCOPE = (
    "A quadratic with steep and flat directions and noise that goes with the curvature; with noise"
    " of one size everywhere there was no early drop."
)
STEPS = 1000
CUTS = (50, 200, 500, 800, STEPS)  # the last is never
RATE, CUT, NOISE, START = 0.5, 0.1, 0.6, 4.0
CURVATURES = torch.tensor([1.0] * 8 + [0.01] * 8, dtype=torch.float64)
SOON = 50  # steps after the early cut at which its drop is read
EVERY = 10  # steps between two points of a curve
BUDGET = 3.0
PRICE = 1800  # runs that a second of one core buys


def rates(cut: int) -> list[float]:
    """η_t with one cut to a tenth."""
    return [step_decay(min(t, 2 * cut - 1), cut, CUT, RATE) for t in range(STEPS)]


def descend(runs: int, seed: int) -> Tensor:
    """The losses (cuts, runs, steps / EVERY + 1) of this many runs under each schedule, with the same noise."""
    random = torch.Generator().manual_seed(seed)
    eta = torch.tensor([rates(cut) for cut in CUTS], dtype=torch.float64).T[:, :, None, None]
    theta = torch.full((len(CUTS), runs, len(CURVATURES)), START, dtype=torch.float64)
    losses = [0.5 * theta.square() @ CURVATURES]
    for t in range(STEPS):
        noise = NOISE * CURVATURES.sqrt() * torch.randn(runs, len(CURVATURES), generator=random, dtype=torch.float64)
        theta = theta - eta[t] * (CURVATURES * theta + noise)
        if (t + 1) % EVERY == 0:
            losses.append(0.5 * theta.square() @ CURVATURES)
    return torch.stack(losses, -1)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Mean loss against the step for each cut."""
    runs = max(2, round(PRICE * budget))
    losses = descend(runs, seed)
    curves = {name(cut): losses[k].mean(0).tolist() for k, cut in enumerate(CUTS)}
    soon = (CUTS[0] + SOON) // EVERY
    drop = losses[-1, :, soon] - losses[0, :, soon]
    later = losses[0, :, -1] - losses[1:-1, :, -1]
    error = math.sqrt(runs)
    return {
        "step": list(range(0, STEPS + 1, EVERY)),
        **curves,
        "runs": runs,
        "end": {name(cut): float(losses[k, :, -1].mean()) for k, cut in enumerate(CUTS)},
        "early_drop": float(drop.mean()),
        "early_costs": later.mean(1).tolist(),
        "errors": {"early_drop": float(drop.std()) / error, "early_costs": (later.std(1) / error).tolist()},
    }


def name(cut: int) -> str:
    return "never" if cut == STEPS else f"cut_{cut}"


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    errors = numbers["errors"]
    costs = zip(numbers["early_costs"], errors["early_costs"], strict=True)
    return {
        "early drop": numbers["early_drop"] / errors["early_drop"],
        "costs in the end": min(cost / error for cost, error in costs),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """The loss against the step, a curve for each cut."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 4.2), layout="constrained")
    axes = fig.subplots()
    for cut, colour in zip(CUTS, ("#d66820", "#8a6fd1", "#2b6cd8", "#1f9e77", "0.55"), strict=True):
        label = "never cut" if cut == STEPS else f"cut at {cut}"
        axes.plot(numbers["step"], numbers[name(cut)], color=colour, label=label)
    axes.set_yscale("log")
    axes.set_title("loss, the rate cut to a tenth at one step", fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel("step")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    return fig
