"""Weights of 2 bits: a network trained with rounded weights beside the same one rounded after its training.

    trained      a CNN of 3,658 weights on digits of 8×8, with ordinary weights
    after        each row of its matrices is rounded to −s, 0 or s                      `ops/quantization.py`
    with         trained on for half as many steps, rounded in every forward pass; the gradient goes straight through
    after more   trained on for as many steps without rounding, and rounded then: the extra steps are not the difference

MF names quantization-aware training and gives neither a formula nor a number. At 8 bits rounding costs next to nothing,
so there is nothing to win; 2 bits, three values for a weight, is the hardest form. Accuracy is of 539 digits that are
not trained on. Sizes, steps and rates were chosen on seeds 10 and 11.

Systems: quantization-aware-training
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch

from descend.labs._digit_classes import Digits, measure_accuracy, read_digits, train_classes
from descend.labs._evidence import AtLeast, AtMost
from descend.models.typical_cnn import TypicalCNN, TypicalCNNConfig
from descend.nn.fake_quantized import fake_quantize_model
from descend.nn.quantized import find_matrices
from descend.ops.quantization import fake_quantize_matrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.37",)
PRINTED = "Quantization-aware training is named among the ways to make a network small; no formula, no number."
CLAIM = "A network that was trained with weights of 2 bits reads more digits than the same one rounded after training."
PREDICTIONS = (
    AtLeast(
        "gain over rounding",
        0.02,
        "the network trained with rounded weights reads at least 2 of 100 digits more than the better of the two that "
        "were rounded afterwards; fewer refute it",
    ),
)
CONTROLS = (AtMost("what 8 bits cost", 0.01, "rounding itself is right: at 8 bits it costs at most 1 digit in 100"),)
SCOPE = "one small CNN on 8×8 digits; rows share a step; activations are not rounded"
BUDGET = 5.0
PRICE = 160  # steps of the first training that a second of one core buys, with all that follows
LEAST = 400
RATE = 4e-3


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of every form, over the number of bits where it is rounded afterwards."""
    steps = max(20, round(PRICE * budget))
    given, held = read_digits()
    torch.manual_seed(seed)
    model = TypicalCNN(TypicalCNNConfig(image=(1, 8, 8), widths=(8, 16), convs=1, kernel=3, hidden=(32,)))
    train_classes(model, given, steps, RATE, seed)
    further, aware = copy.deepcopy(model), copy.deepcopy(model)
    train_classes(further, given, steps // 2, RATE / 2, seed + 1)
    fake_quantize_model(aware, 2)
    train_classes(aware, given, steps // 2, RATE / 2, seed + 1)
    bits = [2, 3, 4, 8]
    return {
        "bits": bits,
        "rounded": [measure_rounded(model, held, n) for n in bits],
        "rounded, trained on": [measure_rounded(further, held, n) for n in bits],
        "dense": measure_accuracy(model, held),
        "dense, trained on": measure_accuracy(further, held),
        "trained with 2 bits": measure_accuracy(aware, held),
        "steps": steps,
        "images": len(held.y),
    }


def measure_rounded(model: TypicalCNN, held: Digits, bits: int) -> float:
    """Accuracy with weights of so many bits."""
    rounded = copy.deepcopy(model)
    for layer in find_matrices(rounded).values():
        layer.weight.data = fake_quantize_matrix(layer.weight.data, bits)
    return measure_accuracy(rounded, held)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    after = max(numbers["rounded"][0], numbers["rounded, trained on"][0])
    return {
        "gain over rounding": numbers["trained with 2 bits"] - after,
        "what 8 bits cost": numbers["dense, trained on"] - numbers["rounded, trained on"][-1],
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["steps"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy over bits."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.6), layout="constrained")
    axes = fig.subplots()
    axes.axhline(numbers["dense, trained on"], color="0.5", linewidth=1, label="ordinary weights")
    axes.plot(numbers["bits"], numbers["rounded, trained on"], "o-", label="rounded after training")
    axes.plot([2], [numbers["trained with 2 bits"]], "s", label="trained with rounded weights")
    axes.set_xlabel("bits of a weight")
    axes.set_ylabel("accuracy")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
