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

from descend.labs._evidence import Above, AtLeast, AtMost
from descend.nn.dropout import all_masks, geometric_mean, inverted_drop, mask_probabilities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.34", "DLN-A.129")
PRINTED = (
    "Dropout is an ensemble of 2ⁿ weight-sharing subnetworks; the prediction approximates the"
    " geometric mean of their outputs."
)
CLAIM = (
    "Dropout trains 2ⁿ networks with shared weights. The test network is their renormalised geometric mean: exactly for"
    " one dropped layer before a softmax, and for deeper networks nearer to it than a subnetwork typically is."
)
PREDICTIONS = (
    AtMost(
        "one layer",
        1e-12,
        "The largest distance from the geometric mean with one dropped layer: rounding.",
    ),
    AtLeast(
        "deeper layers",
        1e-6,
        "The smallest mean distance with more layers: there it is only near.",
    ),
    Above(
        "nearer by",
        3,
        "How much nearer the test network is than a subnetwork, in standard errors, the least depth.",
        refuted=-3,
    ),
)
SCOPE = "Random tanh networks with 1 to 3 dropped layers of 4 units, all masks enumerated; trained networks may differ."
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


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    rows = zip(numbers["single"], numbers["geometric"], numbers["errors"]["geometric"], strict=True)
    return {
        "one layer": numbers["worst"][0],
        "deeper layers": min(numbers["geometric"][1:]),
        "nearer by": min((single - geometric) / max(error, 1e-12) for single, geometric, error in rows),
    }


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
