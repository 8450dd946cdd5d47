"""The karate club: which side each member took when it split, from the sides of two, its leaders.

    known        member 0, the instructor, and member 33, the administrator, on opposite sides
    distance     the side of the leader who is nearer; as near to both: no answer      28 right, none wrong, 6 ties
    network      a graph convolutional network (Kipf's form, two layers, members are one-hot), trained on these two

No other label is used, neither to choose sizes nor to stop; sizes and rate are those of the network on Cora, and 200
steps. All 34 members are counted, as in the book, so two are right by being taught.

Systems: graph-task-labs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.graphs.karate import LEADERS, load_karate
from descend.engine.minimise import minimise
from descend.labs._evidence import AtLeast, AtMost, Within
from descend.losses.classification import cross_entropy
from descend.models.gcn import GCNConfig, GCNForNodes
from descend.ops.graph.paths import choose_nearest, distances
from descend.ops.graph.structure import build_graph
from descend.optim.rules import AdamW

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.9",)
PRINTED = (
    "The distance to the two leaders is highly correlated with the side that a member of the karate"
    " club took (no number)."
)
CLAIM = (
    "A network that is told the sides of the two leaders alone places at least 31 of the 34 members right; the distance"
    " to the leaders places 28, with 6 ties and no mistake."
)
PREDICTIONS = (
    AtLeast("network right", 31, "Members that the network places right, the two leaders included."),
    Within("distance right", 28, 28, "Members that the distance places right."),
    AtMost("distance wrong", 0, "Members that it places wrong; six are as near to both."),
    Within("distance ties", 6, 6, "Members as near to both."),
)
SCOPE = "One graph of 34 members; nothing follows for others."
BUDGET = 1.0
PRICE = 200  # steps that a second of one core buys
LEAST = 100


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Right, wrong and tied members by distance, and right ones by the network."""
    steps = max(2, round(PRICE * budget))
    club, known = load_karate(), torch.tensor(LEADERS)
    graph, y = build_graph(torch.eye(len(club.y)), club.graph.edges), club.y
    nearest, hops = choose_nearest(graph.links, known), distances(graph.links, known)
    torch.manual_seed(seed)
    model = GCNForNodes(GCNConfig(inputs=len(y), width=16, outputs=2))

    def loss() -> Tensor:
        return cross_entropy(model(graph)[known], y[known]).mean()

    minimise(model, loss, steps, AdamW(0.01, weight_decay=5e-4))
    with torch.no_grad():
        p = model.eval()(graph).softmax(dim=1)[:, 1]
    return {
        "right": int(((p > 0.5).long() == y).sum()),
        "members": len(y),
        "distance_right": int((nearest == y).sum()),
        "distance_wrong": int(((nearest != y) & (nearest >= 0)).sum()),
        "distance_ties": int((nearest < 0).sum()),
        "correlation": float(torch.corrcoef(torch.stack([hops[:, 0] - hops[:, 1], y]).double())[0, 1]),
        "chance": p.tolist(),
        "difference": (hops[:, 0] - hops[:, 1]).tolist(),
        "side": y.tolist(),
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "network right": numbers["right"],
        "distance right": numbers["distance_right"],
        "distance wrong": numbers["distance_wrong"],
        "distance ties": numbers["distance_ties"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Each member by the difference of the distances, and by what the network says."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.6), layout="constrained")
    axes = fig.subplots()
    for side, name in enumerate(("the instructor's side", "the administrator's side")):
        at = [i for i, y in enumerate(numbers["side"]) if y == side]
        across = [numbers["difference"][i] + 0.02 * (i % 9 - 4) for i in at]
        axes.plot(across, [numbers["chance"][i] for i in at], "o", alpha=0.7, label=name)
    axes.axhline(0.5, color="0.6", ls=":")
    axes.set_xlabel("nearer to the instructor  ←  difference of distances  →  nearer to the administrator")
    axes.set_ylabel("network: administrator's side")
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
