"""The raw index as a position, beside sinusoids, on texts twice as long as those that were trained on.

    index        [E[token]; i]                       one more number: 0, 1, 2, … , never seen beyond the trained length
    sinusoids    E[token] + [sin(i ω), cos(i ω), …]  bounded, whatever the length

VOM 11.1 rejects the index because it grows without bound, and expects it to do worse than sinusoids at twice the
trained length. The task is one of order (does A come before B?), the encoder that of the lab `position-encodings`; here
both are trained on lengths up to 50 and asked at 50 and at 100. In that lab, at a third of this length, the index is
the better of the two: the task needs only which of two numbers is larger, and a number that goes on growing still says
so, where sinusoids meet phases that no training has shown.

Systems: position-encoding-labs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import AtLeast
from descend.labs._train import train
from descend.labs.position_encodings import BATCH, ENCODINGS, RATE, Reader, accuracies, texts
from descend.losses.classification import cross_entropy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.30", "DLN-B.41")
PRINTED = (
    "A raw index as a position has three defects: unseen indices beyond the training length,"
    " unequal relative steps, unbounded magnitude; so it is rejected."
)
CLAIM = "At twice the trained length a raw index is worse than sinusoids on a task of word order."
PREDICTIONS = (
    AtLeast(
        "worse at twice",
        0.03,
        "Accuracy of sinusoids less that of the index at twice the trained length; refuted where the"
        " index is better by as much.",
        refuted=-0.03,
    ),
)
CONTROLS = (AtLeast("learned", 0.75, "The lesser accuracy at the trained length."),)
SCOPE = "A task that needs only which of two positions is first, lengths of 50 and 100, two blocks of width 32."
NAMES = ("index", "sinusoidal")
LENGTH = 50
BUDGET = 10.0
PRICE = 36  # steps of both that a second of one core buys
LEAST = 150  # steps below which nothing is said


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of both on the order task, at the trained length and at twice that."""
    steps = max(2, round(PRICE * budget))
    columns: dict[str, list[Any]] = {"encoding": list(NAMES), "trained_length": [], "twice": []}
    for name in NAMES:
        torch.manual_seed(seed)
        model, random = ENCODINGS[name](), torch.Generator().manual_seed(seed)

        def loss(model: Reader = model, random: torch.Generator = random) -> Tensor:
            length = int(torch.randint(LENGTH // 5, LENGTH + 1, (1,), generator=random))
            x, order, _ = texts(BATCH, length, random)
            return cross_entropy(model(x)[0], order).mean()

        train(model, loss, steps, RATE)
        columns["trained_length"].append(accuracies(model, LENGTH, seed)[0])
        columns["twice"].append(accuracies(model, 2 * LENGTH, seed)[0])
    return {**columns, "steps": steps, "length": LENGTH, "chance": 0.5}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    index, waves = numbers["twice"]
    return {"worse at twice": waves - index, "learned": min(numbers["trained_length"])}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Two bars for each encoding."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.6), layout="constrained")
    axes = fig.subplots()
    for shift, name, color in ((-0.2, "trained_length", "#2b6cd8"), (0.2, "twice", "#d66820")):
        axes.bar([i + shift for i in range(2)], numbers[name], 0.38, color=color, label=name.replace("_", " "))
    axes.axhline(numbers["chance"], color="0.4", ls=":", label="chance")
    axes.set_xticks(range(2), numbers["encoding"])
    axes.set_ylim(0, 1.05)
    axes.set_title("accuracy on the order of two words", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False, ncols=3, loc="lower center")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
