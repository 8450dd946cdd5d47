"""The size of the mini-batch: less noise in each gradient, and what that buys.

    g_B = (1/B) Σ_{i ∈ batch} ∇L_i          Var[g_B] = σ²/B          linear rule: η = η₀ B / B₀, with a warmup

A linear softmax classifier on the digits, batches drawn without replacement. For each batch size: the variance of the
gradient at the start, measured on drawn batches; steps and examples until the training loss is at its target, and the
test error there, with one rate for all sizes, with the linear rule, and with the linear rule after a warmup.

MF 8.5.2 names the trade-off without numbers. With one rate the number of steps hardly depends on the batch, so the
examples grow in proportion to it; the linear rule keeps the examples instead and divides the steps. Beyond some size
the rate of the rule is too large, and examples are lost again; for the largest batch here a warmup costs steps, since
so few are needed.

Systems: stochastic-and-minibatch-gd
"""

from __future__ import annotations

import math
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from descend.labs._evidence import Above, Below, Within
from descend.optim.batches import scaled_rate, with_replacement, without_replacement
from descend.optim.schedules import linear_warmup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-A.55",)
PRINTED = (
    "Small batches have more gradient noise; large ones less variance, and may need a scaled"
    " learning rate and warmup (no numbers)."
)
CLAIM = (
    "The variance of a mini-batch gradient falls as 1/B. At one learning rate a larger batch saves no steps and costs"
    " examples in proportion; with the rate scaled by B it needs as many examples and fewer steps."
)
PREDICTIONS = (
    Within("exponent of variance", -1.05, -0.95, "The power of B with which the variance goes; −1 is σ²/B."),
    Above(
        "steps at one rate",
        -0.1,
        "The lowest power of B with which the steps to the target go at one rate; near −1 would refute it.",
    ),
    Below(
        "steps when scaled",
        -0.9,
        "The highest power with the rate scaled by B; near 0 would refute it.",
    ),
)
SCOPE = "A linear softmax classifier on 600 digits, batches of 4 to 256; the slopes over the three smaller sizes."
BUDGET = 9.0
PRICE = 1 / 3  # rounds, each with a new split and order, that a second of one core buys
BATCHES = (4, 16, 64, 256)
RATE, WARMUP, TARGET = 0.1, 10, 0.3  # η₀ of the smallest batch; steps; training loss
TRAIN, MOST, DRAWS = 600, 3000, 400
WAYS = ("one_rate", "scaled", "warmed_up")


class Run(NamedTuple):
    """Until the target: steps, examples, and the error on the test set there."""

    steps: int
    examples: int
    error: float


class Split(NamedTuple):
    """Training and test set; the last input is 1."""

    x: Tensor
    y: Tensor
    x_new: Tensor
    y_new: Tensor


@cache
def digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    x = torch.tensor(pixels / 16, dtype=torch.float32)
    return torch.cat([x, torch.ones(len(x), 1)], 1), torch.tensor(labels)


def split(random: torch.Generator) -> Split:
    x, y = digits()
    order = torch.randperm(len(x), generator=random)
    first, rest = order[:TRAIN], order[TRAIN:]
    return Split(x[first], y[first], x[rest], y[rest])


def gradient(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Xᵀ (p − y) / B of the cross-entropy."""
    return x.T @ ((x @ w).softmax(-1) - one_hot(y, 10)) / len(x)


def run(data: Split, batch: int, way: str, random: torch.Generator) -> Run:
    """Descend until the training loss is at its target, or for MOST steps."""
    rate = RATE if way == "one_rate" else scaled_rate(RATE, batch, BATCHES[0])
    warmup = WARMUP if way == "warmed_up" else 0
    w = torch.zeros(data.x.shape[1], 10)
    every = max(1, BATCHES[2] // batch)
    step = 0
    for step, rows in enumerate(islice(without_replacement(TRAIN, batch, random), MOST), 1):
        w -= linear_warmup(step, warmup, 0.0, rate) * gradient(w, data.x[rows], data.y[rows])
        if step % every == 0 and torch.nn.functional.cross_entropy(data.x @ w, data.y) <= TARGET:
            break
    wrong = (data.x_new @ w).argmax(-1) != data.y_new
    return Run(step, step * batch, wrong.float().mean().item())


def variance(data: Split, batch: int, random: torch.Generator) -> float:
    """Var[g_B] summed over the parameters, at w = 0, on drawn batches."""
    w = torch.zeros(data.x.shape[1], 10)
    drawn = [gradient(w, data.x[i], data.y[i]) for i in islice(with_replacement(TRAIN, batch, random), DRAWS)]
    return torch.stack(drawn).var(0).sum().item()


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Means over the rounds, a row for each batch size; a second of budget buys a third of a round, of at least 3."""
    rounds = max(3, round(PRICE * budget))
    noise = torch.zeros(rounds, len(BATCHES))
    found = torch.zeros(rounds, len(WAYS), len(BATCHES), 3)
    for r in range(rounds):
        data = split(torch.Generator().manual_seed(seed * 1000 + r))
        for k, batch in enumerate(BATCHES):
            random = torch.Generator().manual_seed(seed * 1000 + r)
            noise[r, k] = variance(data, batch, random)
            for j, way in enumerate(WAYS):
                found[r, j, k] = torch.tensor(run(data, batch, way, random))
    mean = found.mean(0)
    growth = [exponent(noise[r].tolist()) for r in range(rounds)]
    return {
        "batch": list(BATCHES),
        "variance": noise.mean(0).tolist(),
        **{f"{name}_{way}": mean[j, :, i].tolist() for i, name in enumerate(Run._fields) for j, way in enumerate(WAYS)},
        "rounds": rounds,
        "exponent_of_variance": sum(growth) / rounds,
        "exponent_of_steps_one_rate": [exponent(found[r, 0, :3, 0].tolist()) for r in range(rounds)],
        "exponent_of_steps_scaled": [exponent(found[r, 1, :3, 0].tolist()) for r in range(rounds)],
        "errors": {"exponent_of_variance": float(torch.tensor(growth).std()) / math.sqrt(rounds)},
    }


def exponent(values: list[float]) -> float:
    """The slope of log value against log B, by least squares."""
    x, y = (torch.tensor(v, dtype=torch.float64).log() for v in (BATCHES[: len(values)], values))
    x = x - x.mean()
    return float((x * y).sum() / x.square().sum())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "exponent of variance": numbers["exponent_of_variance"],
        "steps at one rate": min(numbers["exponent_of_steps_one_rate"]),
        "steps when scaled": max(numbers["exponent_of_steps_scaled"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["rounds"] < 3 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Variance, and steps and examples to the target, against the batch size."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(10, 3.6), layout="constrained")
    left, middle, right = fig.subplots(1, 3)
    left.loglog(numbers["batch"], numbers["variance"], "o-", color="#2b6cd8")
    for axes, name in ((middle, "steps"), (right, "examples")):
        for way, colour in zip(WAYS, ("0.55", "#2b6cd8", "#d66820"), strict=True):
            axes.loglog(numbers["batch"], numbers[f"{name}_{way}"], "o-", color=colour, label=way.replace("_", " "))
    for axes, title in ((left, "variance of the gradient"), (middle, "steps to the loss"), (right, "examples to it")):
        axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
        axes.set_xlabel("batch size")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False, fontsize=9)
    return fig
