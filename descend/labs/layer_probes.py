"""Which layer knows what: linear probes on every layer for a local and for a long-range label.

    x_l = x_{l-1} + attention(norm(x_{l-1}))        probe:  ŷ = argmax (x_l W),  W by least squares

    token        the token itself                               in the embedding already
    local        the token before                               one step of attention away
    long-range   the token that followed the earlier occurrence of this one, up to 16 positions away

Measured on the two-layer model of `induction_heads`, whose text repeats with a period that must be found. VOM 12.2.4
says that early blocks hold shallow patterns and later ones long-range relations, and gives no measure; here the labels
are planted, so "decodable" has a number. Also reported: how far each layer looks on average.

Systems: attention-head-and-layer-probes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from descend.labs._evidence import Within
from descend.labs.induction_heads import LENGTH, PRICE, VOCAB, mark_repeats, texts, train_model
from descend.metrics.attention_maps import distance
from descend.metrics.probe import probe_accuracy
from descend.nn.attention.maps import attention_maps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.47",)
PRINTED = (
    "Early blocks hold shallow patterns, middle blocks more complex dependencies, deep blocks"
    " long-range ones (no measure given)."
)
CLAIM = (
    "In a trained transformer a local label can be read from an earlier layer than a long-range one: the previous"
    " token after one layer, a token that must be looked up far back only after two."
)
PREDICTIONS = (
    Within(
        "token readable from",
        0,
        0,
        "The first layer from which the token itself can be read (above 0.5).",
    ),
    Within("local readable from", 1, 1, "The same for the previous token."),
    Within(
        "far readable from",
        2,
        2,
        "The same for a token that must be looked up far back; an earlier layer refutes it.",
    ),
)
SCOPE = "The two-layer model of induction-heads, planted labels, linear probes."
BUDGET = 5.0
LABELS = ("token", "local", "long_range")


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Probe accuracies by layer, and the mean distance that each layer looks."""
    steps = max(10, round(1.5 * PRICE * budget))  # the two-layer model alone
    model, _ = train_model(2, steps, seed)
    x, y, p = texts(600, torch.Generator().manual_seed(seed + 10_000))
    known = mark_repeats(p) & (torch.arange(LENGTH) > 0)
    labels = {"token": x, "local": x.roll(1, dims=1), "long_range": y}
    with torch.no_grad():
        states = model.states(x)
    found: dict[str, Any] = {
        name: [probe_accuracy(state[known], label[known]) for state in states] for name, label in labels.items()
    }
    looks = [float(distance(a)[:, :, LENGTH // 2 :].mean()) for a in attention_maps(model, x).values()]
    return {"layer": [0, 1, 2], **found, "mean_distance": looks, "steps": steps, "chance": 1 / VOCAB}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    token, local, far = (earliest(numbers[name]) for name in LABELS)
    return {"token readable from": token, "local readable from": local, "far readable from": far}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return (
        BUDGET
        if numbers["steps"] < 200
        or (earliest(numbers["long_range"]) == len(numbers["layer"]) and numbers["steps"] < 1000)
        else 0.0
    )


def earliest(accuracies: list[float], enough: float = 0.5) -> int:
    """The first layer from which a label can be read; as many as there are layers if from none."""
    return next((layer for layer, accuracy in enumerate(accuracies) if accuracy > enough), len(accuracies))


def figure(numbers: dict[str, Any]) -> Figure:
    """Probe accuracy against the layer, one line a label."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 4), layout="constrained")
    axes = fig.subplots()
    for name, color in zip(LABELS, ("0.6", "#2b6cd8", "#d66820"), strict=True):
        axes.plot(numbers["layer"], numbers[name], "o-", color=color, label=name.replace("_", "-"))
    axes.axhline(numbers["chance"], color="0.8", ls=":", label="chance")
    axes.set_xticks(numbers["layer"], ["embedding", "layer 1", "layer 2"])
    axes.set_ylim(0, 1.05)
    axes.set_title("what a linear probe reads", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
