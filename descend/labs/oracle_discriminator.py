"""The oracle discriminator: what the best judge of two distributions says while one of them moves to the other.

    true N(0, 1), generated N(m, 1), m = 4, 3, 2, 1, ½, 0, as many of each

    D*(x) = p(x) / (p(x) + q(x)) = σ(m²/2 − m x)        accuracy ½ + ½ TV = Φ(m/2)        value 2 JS − log 4

Beside it a discriminator that knows samples only: a network with two hidden layers of 32, trained by the GAN's own loss
on fresh samples. It is compared with D* on samples of both, and its accuracy with Φ(m/2). At m = 0 nothing can be told:
D = ½, accuracy ½, value −log 4.

Systems: optimal-discriminator
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import Above, Below
from descend.labs._train import train
from descend.losses.adversarial import discriminator_loss
from descend.models.gan import Discriminator
from descend.ops.adversarial_game import best_value, oracle_accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.38", "DLN-C.41", "S940-DLD.106")
PRINTED = "The oracle D = p/(p + q) has accuracy ½ + TV/2; at p = q it says ½ everywhere and the value is −log 4."
CLAIM = (
    "As the generated distribution moves to the true one, the accuracy of the best discriminator falls to one half, and"
    " a trained discriminator approaches it at every distance."
)
PREDICTIONS = (
    Below("accuracy off", 0.02, "The largest distance of the trained accuracy from the oracle's."),
    Below("D off", 0.05, "The largest mean difference of D and D*."),
    Above(
        "oracle falls by",
        0,
        "The least fall of the oracle's accuracy from one distance to the next.",
    ),
    Below("chance off", 0.02, "The distance of the trained accuracy from ½ at m = 0."),
    Below("value off", 0.02, "The distance of the value from −log 4 at m = 0."),
)
SCOPE = "Two Gaussians of a line, a discriminator of two hidden layers of 32."
MEANS = (4.0, 3.0, 2.0, 1.0, 0.5, 0.0)
BATCH, JUDGED = 256, 20_000
BUDGET = 3.0
PRICE = 160  # training steps at each distance that a second of one core buys
ENOUGH = 300  # steps below which nothing is said


def true_logit(x: Tensor, m: float) -> Tensor:
    """log p(x)/q(x) = m²/2 − m x"""
    return m**2 / 2 - m * x


def known(m: float) -> tuple[float, float]:
    """Accuracy and value of D*, on a grid."""
    x = torch.linspace(-8, 12, 40_001, dtype=torch.float64)
    p, q = (torch.softmax(-((x - mean) ** 2) / 2, 0) for mean in (0.0, m))
    return float(oracle_accuracy(p, q)), float(best_value(p, q))


def fit(m: float, steps: int, seed: int) -> Discriminator:
    """A discriminator trained on fresh samples."""
    torch.manual_seed(seed)
    model, random = Discriminator(1, 32, 2), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        x, y = torch.randn(2, BATCH, 1, generator=random)
        return discriminator_loss(model(x), model(y + m))

    train(model, loss, steps, 1e-2)
    return model.eval()


@torch.no_grad()
def judge(model: Discriminator, m: float, seed: int) -> tuple[float, float, float]:
    """Accuracy, value, and mean |D − D*| over samples of both."""
    x, y = torch.randn(2, JUDGED, 1, generator=torch.Generator().manual_seed(seed + 10_000))
    y = y + m
    real, fake = model(x), model(y)
    accuracy = ((real > 0).double().mean() + (fake <= 0).double().mean()) / 2
    both, logits = torch.cat([x, y])[:, 0], torch.cat([real, fake])
    apart = (logits.sigmoid() - true_logit(both, m).sigmoid()).abs().mean()
    return float(accuracy), -float(discriminator_loss(real, fake)), float(apart)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy and value of D* and of a trained discriminator at each distance."""
    steps = max(2, round(PRICE * budget))
    found = [judge(fit(m, steps, seed), m, seed) for m in MEANS]
    best = [known(m) for m in MEANS]
    return {
        "m": list(MEANS),
        "oracle_accuracy": [accuracy for accuracy, _ in best],
        "trained_accuracy": [accuracy for accuracy, _, _ in found],
        "oracle_value": [value for _, value in best],
        "trained_value": [value for _, value, _ in found],
        "mean_difference": [apart for _, _, apart in found],
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    oracle, trained = numbers["oracle_accuracy"], numbers["trained_accuracy"]
    return {
        "accuracy off": max(abs(a - b) for a, b in zip(oracle, trained, strict=True)),
        "D off": max(numbers["mean_difference"]),
        "oracle falls by": min(a - b for a, b in pairwise(oracle)),
        "chance off": abs(trained[-1] - 0.5),
        "value off": abs(numbers["trained_value"][-1] + math.log(4)),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy against the distance, and D*(x) for three of them."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = fig.subplots(1, 2)
    left.plot(numbers["m"], numbers["oracle_accuracy"], "-", color="#2b6cd8", label="D*: Φ(m/2)")
    left.plot(numbers["m"], numbers["trained_accuracy"], "o", color="#d66820", label="trained")
    left.set_xlabel("distance m of the generated mean")
    left.set_title("accuracy", fontsize=11, loc="left", fontweight="bold")
    left.legend(frameon=False)
    x = torch.linspace(-3, 6, 200)
    for m in (4.0, 2.0, 0.0):
        right.plot(x, true_logit(x, m).sigmoid(), label=f"m = {m:g}")
    right.set_xlabel("x")
    right.set_title("D*(x)", fontsize=11, loc="left", fontweight="bold")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
