"""Dropout's test network against the geometric mean of all the networks that it stands for.

    p_geo = softmax(Σ_m P(m) log p_m)        over the 2ⁿ masks m of the n dropped units, enumerated
    distance = ½ Σ_k |p_k − q_k|             between two distributions over classes

Random tanh networks with 1 to 3 dropped layers of 4 units and a softmax of 3 classes, p = ½, inverted. One dropped
layer right before the softmax: the logits are linear in the mask, so the two agree to rounding. With more layers they
do not; how far they differ is compared with how far a single subnetwork lies from the mean.

Systems: dropout
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.nn.dropout import all_masks, geometric_mean, inverted_drop, mask_probabilities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIM = (
    "Dropout trains 2ⁿ networks with shared weights. The test network is their renormalised geometric mean: exactly for"
    " one dropped layer before a softmax, and for deeper networks nearer to it than a subnetwork typically is."
)
UNITS, CLASSES, P = 4, 3, 0.5
DEPTHS = (1, 2, 3)
BUDGET = 2.0
PRICE = 450  # networks of every depth that a second of one core buys


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Distances against the number of dropped layers."""
    networks = max(10, round(PRICE * budget))
    random = torch.Generator().manual_seed(seed)
    columns: dict[str, list[float]] = {"depth": list(DEPTHS)}
    errors: list[float] = []
    for depth in DEPTHS:
        found = torch.stack([distances(depth, random) for _ in range(networks)])
        for name, column in zip(("geometric", "arithmetic", "single", "worst"), found.T, strict=True):
            columns.setdefault(name, []).append(float(column.max() if name == "worst" else column.mean()))
        errors.append(float((found[:, 0] - found[:, 2]).std() / math.sqrt(networks)))
    return {
        **columns,
        "networks": networks,
        "masks": [2 ** (UNITS * d) for d in DEPTHS],
        "errors": {"geometric": errors},
    }


def distances(depth: int, random: torch.Generator) -> Tensor:
    """Of one random network: test network to the geometric mean, to the arithmetic mean, a subnetwork to the former."""
    draw = lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=random)
    x, head = draw(UNITS), 2 * draw(CLASSES, UNITS) / math.sqrt(UNITS)
    layers = [2 * draw(UNITS, UNITS) / math.sqrt(UNITS) for _ in range(depth - 1)]
    masks = all_masks(UNITS * depth).view(-1, depth, UNITS)
    weight = mask_probabilities(masks.flatten(1), 1 - P)
    logits = network(x, layers, head, masks)
    test = network(x, layers, head, torch.full((1, depth, UNITS), 1 - P, dtype=torch.float64))[0].softmax(-1)
    geometric, p = geometric_mean(logits, weight), logits.softmax(-1)
    apart = lambda a, b: (a - b).abs().sum(-1) / 2
    to_geometric = apart(test, geometric)
    return torch.stack([to_geometric, apart(test, weight @ p), weight @ apart(p, geometric), to_geometric])


def network(x: Tensor, layers: list[Tensor], head: Tensor, masks: Tensor) -> Tensor:
    """Logits (m, classes) with masks (m, depth, units); a mask of 1 − p everywhere is the test network."""
    h = inverted_drop(x, masks[:, 0], P)
    for i, w in enumerate(layers, 1):
        h = inverted_drop(torch.tanh(h @ w.T), masks[:, i], P)
    return h @ head.T


def verdict(numbers: dict[str, Any]) -> str:
    """Refuted if one layer is not exact to 1e-12, a deeper network is, or it is no nearer than a subnetwork.

    The last is open within 3 standard errors; else supported.
    """
    gaps = [s - g for s, g in zip(numbers["single"], numbers["geometric"], strict=True)]
    errors = numbers["errors"]["geometric"]
    if numbers["worst"][0] > 1e-12 or min(numbers["geometric"][1:]) < 1e-6:
        return "refuted"
    if any(gap < -3 * error for gap, error in zip(gaps, errors, strict=True)):
        return "refuted"
    return "supported" if all(gap > 3 * error for gap, error in zip(gaps, errors, strict=True)) else "open"


def figure(numbers: dict[str, Any]) -> Figure:
    """Distances to the geometric mean against depth."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(5.2, 3.9), layout="constrained")
    axes = fig.subplots()
    names = {"single": "a subnetwork", "geometric": "the test network", "arithmetic": "test network to arithmetic mean"}
    for (name, label), colour in zip(names.items(), ("#d66820", "#2b6cd8", "0.6"), strict=True):
        axes.plot(numbers["depth"], numbers[name], "o-", color=colour, label=label)
    axes.set_xticks(numbers["depth"])
    axes.set_xlabel("dropped layers")
    axes.set_title("distance to the geometric mean", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False, fontsize=9)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
