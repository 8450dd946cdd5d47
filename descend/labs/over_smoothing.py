"""Over-smoothing: with every layer that averages, nodes become more alike.

    rate        ‖Âᵏ H − u uᵀ H‖ on the karate club, random H: its ratio from layer to layer, against |λ₂| of Â
    depth       graph convolutional networks (Kipf's form) of 1 to 32 layers on a planted partition of 600 nodes, 80 of
                them labelled: accuracy on the others, and the Dirichlet energy of the node vectors, E(H) / ‖H‖²,
                before training (what averaging alone does) and after it

All depths have the same width, rate and steps. Deep networks fail here for two reasons that belong together: their
vectors are alike, and hardly any gradient is left that could change that. S940 says that two to four layers work best;
"best" is taken up to a point (1%), which is about the spread of the accuracy on 520 nodes. Sizes and thresholds were
chosen on seeds 10 to 12.

Systems: over-smoothing
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.graphs.karate import load_karate
from descend.data.toys.partition import FEATURES, plant_partition
from descend.engine.minimise import minimise
from descend.labs._evidence import AtLeast, AtMost, Below
from descend.losses.classification import cross_entropy
from descend.models.gcn import GCNConfig, GCNForNodes
from descend.ops.graph.smoothing import dirichlet_energy, distance_to_limit, mean_distance, smooth, smoothing_rate
from descend.ops.graph.structure import Graph, build_graph
from descend.optim.rules import AdamW
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.136",)
PRINTED = "Many layers make node vectors indistinguishable; 2 to 4 layers work best."
CLAIM = (
    "Differences between nodes shrink at the rate of the second largest eigenvalue; a graph convolutional network is"
    " best with two to four layers, up to 1%, worse by 10% with 16 and 32, and its energy falls with its depth."
)
PREDICTIONS = (
    Below("rate off", 0.01, "Relative distance of the measured rate from |λ₂|."),
    AtMost(
        "lead of other depths",
        0.01,
        "The best accuracy of any depth less that of two to four layers.",
    ),
    AtLeast(
        "lost with 16 and 32",
        0.1,
        "The accuracy of two to four layers less that of 16 or 32, whichever is better.",
    ),
    Below(
        "energy of next depth",
        1,
        "The largest ratio of the energy before training from one depth to the next.",
    ),
)
SCOPE = (
    "The karate club and a planted partition of 600 nodes, width 16; sizes and thresholds were"
    " chosen on seeds 10 to 12."
)
NODES, LABELLED, CLASSES, WIDTH = 600, 80, 4, 16
DEPTHS = (1, 2, 3, 4, 8, 16, 32)
FROM, TO = 20, 40  # layers between which the rate is measured
BUDGET = 1.5
PRICE = 50  # steps of every network that a second of one core buys
LEAST = 50


def measure_rate(seed: int) -> tuple[float, float]:
    """The ratio from one layer to the next, and |λ₂|."""
    club = load_karate().graph
    links = build_graph(club.nodes, club.edges).links
    x = torch.randn(links.n, 8, dtype=torch.float64, generator=generator(seed, 1))
    early, late = (distance_to_limit(smooth(x, links, k), links) for k in (FROM, TO))
    return float((late / early) ** (1 / (TO - FROM))), smoothing_rate(links)


@torch.no_grad()
def measure_energy(model: GCNForNodes, graph: Graph) -> float:
    """E(H) / ‖H‖² of what the last layer gives; 0 where nothing is left."""
    h = model(graph).double()
    return float(dirichlet_energy(h, graph.links).sum() / h.square().sum().clamp_min(1e-300))


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The rate, and by depth: accuracy, energy before and after training, and the distance of two nodes."""
    steps = max(2, round(PRICE * budget))
    planted = plant_partition(NODES, CLASSES, seed=seed)
    graph = build_graph(planted.x, torch.cat([planted.pairs, planted.pairs.flip(1)]))
    rate, eigenvalue = measure_rate(seed)
    found: dict[str, list[float]] = {"depth": [], "accuracy": [], "energy_before": [], "energy": [], "distance": []}
    for depth in DEPTHS:
        torch.manual_seed(seed)
        model = GCNForNodes(GCNConfig(FEATURES, WIDTH, CLASSES, depth, dropout=0.0))
        found["depth"].append(depth)
        found["energy_before"].append(measure_energy(model, graph))

        def loss(model: GCNForNodes = model) -> Tensor:
            return cross_entropy(model(graph)[:LABELLED], planted.y[:LABELLED]).mean()

        minimise(model, loss, steps, AdamW(0.01, weight_decay=5e-4))
        with torch.no_grad():
            z = model(graph)
        found["accuracy"].append(float((z.argmax(1) == planted.y)[LABELLED:].double().mean()))
        found["energy"].append(measure_energy(model, graph))
        found["distance"].append(float(mean_distance(z)))
    return {**found, "rate": rate, "eigenvalue": eigenvalue, "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    accuracy = dict(zip(numbers["depth"], numbers["accuracy"], strict=True))
    energy = dict(zip(numbers["depth"], numbers["energy_before"], strict=True))
    best = max(accuracy[depth] for depth in (2, 3, 4))
    return {
        "rate off": abs(numbers["rate"] / numbers["eigenvalue"] - 1),
        "lead of other depths": max(accuracy.values()) - best,
        "lost with 16 and 32": best - max(accuracy[depth] for depth in (16, 32)),
        "energy of next depth": max(energy[b] / energy[a] for a, b in pairwise((2, 4, 8, 16, 32))),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy and energy against depth."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = fig.subplots(1, 2)
    left.plot(numbers["depth"], numbers["accuracy"], "o-")
    left.axhline(1 / CLASSES, color="0.6", ls=":", label="chance")
    left.set_title("accuracy", fontsize=11, loc="left", fontweight="bold")
    left.legend(frameon=False)
    for name, key in (("before training", "energy_before"), ("after it", "energy")):
        right.semilogy(numbers["depth"], numbers[key], "o-", label=name)
    right.set_title("Dirichlet energy / ‖H‖²", fontsize=11, loc="left", fontweight="bold")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("layers")
        axes.spines[["top", "right"]].set_visible(False)
    return fig
