"""A small network that a larger one teaches, beside its twin: the same network, images and steps, and labels alone.

    teacher     a CNN of 13,706 weights, trained on 1,258 digits and shifted and turned copies of them
    student     666 weights, 60 of these images:   α CE(labels) + (1 − α) τ² KL(teacher ‖ student),  α = 0.1, τ = 4
    twin        the same start, batches and steps: CE(labels)

MF prints the loss without a temperature (τ = 1), which is measured beside it. Both students see the same warped images
in the same order; what the teacher learned from more images reaches one of them through its probabilities. Taught by
a teacher that had seen the same 60 images only, students were no better than their twins on the seeds that were looked
at. Accuracy is of 539 digits that nobody was trained on, over several draws of images and starts. Sizes and rates were
chosen on draws of their own (1000, 1001, 1100).

Systems: knowledge-distillation
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.data.images.warp import Warp
from descend.labs._digit_classes import Digits, measure_accuracy, read_digits, train_on
from descend.labs._evidence import Above, AtLeast
from descend.losses.distillation import taught_loss
from descend.models.typical_cnn import TypicalCNN, TypicalCNNConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.83", "VOM-B.144")
PRINTED = "A small student that also learns the probabilities of a large teacher keeps most of its quality."
CLAIM = "A small network taught by a larger one reads more digits than the same network trained on the labels alone."
PREDICTIONS = (
    AtLeast(
        "gain over the twin",
        0.01,
        "the taught student reads at least 1 of 100 digits more than its twin, on average over draws; a smaller gain, "
        "or none, refutes it",
    ),
)
CONTROLS = (Above("teacher above twin", 0.02, "there is something to learn: the teacher is above the twin"),)
SCOPE = "small CNNs on 8×8 digits, a teacher that saw more of them; classes, not sequences"
BUDGET = 20.0
PRICE = 0.2  # draws that a second of one core buys
STEPS, RATE, IMAGES = 400, 6e-3, 60
WARP = Warp(shift=0.06, turn=10.0, zoom=0.1)
ALPHA, TAU = 0.1, 4.0


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of teacher, both students and the twin, for every draw."""
    draws = max(1, round(PRICE * budget))
    everything, held = read_digits()
    columns: dict[str, list[float]] = {name: [] for name in ("teacher", "twin", "taught", "taught as printed")}
    for draw in range(draws):
        number = 100 * seed + draw
        given = everything.draw(IMAGES, number)
        teacher = build((16, 32), 64, number)
        learn(teacher, everything, make_loss(teacher, teacher, 1.0, 1.0), number)
        teacher.eval()
        columns["teacher"].append(measure_accuracy(teacher, held))
        for name, alpha, tau in (("twin", 1.0, 1.0), ("taught", ALPHA, TAU), ("taught as printed", ALPHA, 1.0)):
            student = build((4, 8), 0, number)
            learn(student, given, make_loss(student, teacher, alpha, tau), number)
            columns[name].append(measure_accuracy(student, held))
    return {**columns, "parameters": [count(build((16, 32), 64, 0)), count(build((4, 8), 0, 0))], "images": IMAGES}


def build(widths: tuple[int, ...], hidden: int, seed: int) -> TypicalCNN:
    torch.manual_seed(seed)
    dense = (hidden,) if hidden else ()
    return TypicalCNN(TypicalCNNConfig(image=(1, 8, 8), widths=widths, convs=1, kernel=3, hidden=dense))


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def make_loss(student: nn.Module, teacher: nn.Module, alpha: float, tau: float) -> Callable[[Tensor, Tensor], Tensor]:
    """α L + (1 − α) τ² KL; with α = 1 the labels alone."""

    def loss(x: Tensor, y: Tensor) -> Tensor:
        logits = student(x)
        labels = F.cross_entropy(logits, y, reduction="none")
        if alpha == 1:
            return labels.mean()
        with torch.no_grad():
            says = teacher(x)
        return taught_loss(labels, logits, says, alpha, tau).mean()

    return loss


def learn(model: nn.Module, given: Digits, loss: Callable[[Tensor, Tensor], Tensor], seed: int) -> None:
    """On warped images, the same for everyone with this seed."""
    random = torch.Generator().manual_seed(seed)

    def warped(x: Tensor, y: Tensor) -> Tensor:
        return loss(WARP(x, torch.rand(len(x), WARP.chance, generator=random) * 2 - 1), y)

    train_on(model, warped, given, STEPS, RATE, seed)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    mean = {name: statistics.mean(numbers[name]) for name in ("teacher", "twin", "taught")}
    return {
        "gain over the twin": mean["taught"] - mean["twin"],
        "teacher above twin": mean["teacher"] - mean["twin"],
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if len(numbers["twin"]) >= 4 else 4 / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy of each draw."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.6), layout="constrained")
    axes = fig.subplots()
    for place, name in enumerate(("teacher", "twin", "taught", "taught as printed")):
        axes.plot([place] * len(numbers[name]), numbers[name], "o", alpha=0.6)
    axes.set_xticks(range(4), ["teacher", "labels alone", "taught, τ = 4", "taught, τ = 1"])
    axes.set_ylabel("accuracy")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
