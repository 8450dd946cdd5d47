"""Generative against discriminative classifiers: who needs fewer examples, and who is right when the model is wrong.

    generative      naive Bayes: Gaussian classes with independent numbers      (`classic/generative_classifier.py`)
    discriminative  logistic regression, a small ridge                          (`classic/linear.py`)

On independent Gaussian data the generative one knows more, so few examples are enough for it. On exponential data its
model is wrong, while a line is still the best boundary: the generative one is off however many examples it sees, and
the discriminative one finds the line.

Systems: generative-versus-discriminative
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.classic.generative_classifier import fit_diagonal
from descend.classic.linear import logistic_regression
from descend.labs._evidence import Above

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.224",)
PRINTED = (
    "Generative and discriminative models are mathematically interchangeable by Bayes' rule (with x"
    " and y exchanged in print)."
)
CLAIM = (
    "With few examples of data that its model fits, a generative classifier is ahead of a discriminative one; with many"
    " examples of data that its model does not fit, it is behind."
)
PREDICTIONS = (
    Above(
        "ahead with few",
        0.01,
        "The generative one's lead with the fewest examples where its model is right.",
    ),
    Above(
        "behind with many",
        0.01,
        "How far it is behind with the most examples where its model is wrong.",
    ),
)
SCOPE = "Gaussian and exponential data of 20 numbers, naive Bayes and logistic regression."
NUMBERS, RIDGE, HELD_OUT = 20, 0.1, 2000
SIZES = (80, 150, 400, 1000, 4000)
BUDGET = 2.0
PRICE = 5  # repetitions that a second of one core buys
LEAST = 8


def draw_gaussians(n: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Two classes with the same covariance."""
    y = torch.randint(2, (n,), generator=random)
    x = torch.randn(n, NUMBERS, generator=random, dtype=torch.float64)
    return x + 0.35 * (2 * y[:, None] - 1), y


def draw_exponentials(n: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Every number is exponential; its mean is 1 or 2.5, by the class. The best boundary is a line."""
    y = torch.randint(2, (n,), generator=random)
    x = -torch.rand(n, NUMBERS, generator=random, dtype=torch.float64).log()
    return x * (1 + 1.5 * y[:, None]), y


def compare(draw: Any, n: int, random: torch.Generator) -> tuple[float, float]:
    """Accuracies on new examples, of the generative and the discriminative one."""
    x, y = draw(n, random)
    while int(torch.bincount(y, minlength=2).min()) < 2:
        x, y = draw(n, random)
    new, truth = draw(HELD_OUT, random)
    generative = fit_diagonal(x, y, 2).probability(new).argmax(1)
    discriminative = (logistic_regression(x, y.double(), ridge=RIDGE)(new) > 0).long()
    return tuple(float((answer == truth).double().mean()) for answer in (generative, discriminative))  # type: ignore[return-value]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Mean accuracies by the number of examples, on both kinds of data."""
    random, repeats = torch.Generator().manual_seed(seed), max(2, round(PRICE * budget))
    found: dict[str, Any] = {"examples": list(SIZES), "repeats": repeats}
    for name, draw in (("right", draw_gaussians), ("wrong", draw_exponentials)):
        rows = [[compare(draw, n, random) for _ in range(repeats)] for n in SIZES]
        for k, kind in enumerate(("generative", "discriminative")):
            found[f"{kind}_{name}"] = [sum(pair[k] for pair in row) / repeats for row in rows]
    return found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "ahead with few": numbers["generative_right"][0] - numbers["discriminative_right"][0],
        "behind with many": numbers["discriminative_wrong"][-1] - numbers["generative_wrong"][-1],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["repeats"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy by the number of examples."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.2), layout="constrained")
    for axes, name in zip(fig.subplots(1, 2), ("right", "wrong"), strict=True):
        for kind in ("generative", "discriminative"):
            axes.semilogx(numbers["examples"], numbers[f"{kind}_{name}"], marker="o", label=kind)
        axes.set_title(f"the generative model is {name}")
        axes.set_xlabel("training examples")
    fig.axes[0].set_ylabel("accuracy")
    fig.axes[0].legend()
    return fig
