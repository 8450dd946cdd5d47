"""Which links are missing? Held-out links of a graph against pairs without a link.

    graph         600 nodes in 20 groups of which 95 of 100 links stay inside, features with much noise
    network       a graph convolutional network, the dot product of two nodes' vectors; messages run along the links
                  of training that are not asked about at that step
    popularity    s(u, v) = D_u D_v: who has many links gets more

A tenth of the links is asked about, with as many pairs that are linked nowhere; another tenth is left unused. The most
that can be reached follows from the groups: a pair inside one is more likely a link, and nothing else tells.
Sizes and steps were looked at on seed 10.

Systems: graph-task-labs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.graphs.attributed import link
from descend.data.graphs.links import LinkBatches, cut_links
from descend.data.toys.partition import FEATURES, plant_partition
from descend.labs._evidence import AtLeast, Below
from descend.labs._train import train
from descend.losses.classification import binary_cross_entropy
from descend.metrics.ranking import find_auc
from descend.models.gcn import GCNConfig, GCNForEdges
from descend.ops.graph.batches import read_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.137",)
PRINTED = "Recommendation and citation graphs are named among the uses of graph networks (no number)."
CLAIM = "A graph network ranks held-out links above pairs without one with an AUC of at least 0.9; popularity does not."
PREDICTIONS = (
    AtLeast("AUC of the network", 0.9, "Held-out links against pairs without one; 0.5 is chance."),
    Below(
        "AUC of popularity",
        0.9,
        "The same for the product of degrees: links that popularity explains would need no network.",
    ),
)
SCOPE = "A planted graph of 600 nodes and 20 groups; sizes were looked at on seed 10."
NODES, GROUPS, DEGREE, SAME, NOISE = 600, 20, 10.0, 0.95, 2.0
CONFIG = GCNConfig(FEATURES, 64, 1, depth=2, dropout=0.0)
HELD, HIDDEN = 0.1, 0.3  # links of each held-out part; those that training asks about at a step
BUDGET = 3.0
PRICE = 80  # steps that a second of one core buys
LEAST = 150


def measure(seed: int, budget: float) -> dict[str, Any]:
    """AUC of the network, of popularity, and of knowing the groups."""
    steps = max(2, round(PRICE * budget))
    planted = plant_partition(NODES, GROUPS, DEGREE, SAME, NOISE, seed)
    splits = cut_links(link(planted.x, planted.pairs), (), HELD, HELD)
    stream = LinkBatches(splits, seed, hidden=HIDDEN)
    torch.manual_seed(seed)
    model = GCNForEdges(CONFIG)

    def loss() -> Tensor:
        batch = next(stream)
        z = model(read_graph(batch), batch["pairs"])[:, 0]
        return binary_cross_entropy(z, batch["y"].float()).mean()

    train(model, loss, steps, lr=1e-2)
    test = splits.test
    with torch.no_grad():
        z = model.eval()(read_graph(splits.whole), test.pairs)[:, 0]
    one, other = planted.y[test.pairs].unbind(1)
    return {
        "auc": find_auc(z, test.y),
        "popularity": find_auc(splits.score_popularity(test.pairs), test.y),
        "groups": find_auc((one == other).double(), test.y),
        "asked": len(test),
        "score": z.sigmoid().tolist(),
        "linked": test.y.tolist(),
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {"AUC of the network": numbers["auc"], "AUC of popularity": numbers["popularity"]}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The scores of links and of other pairs."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.4), layout="constrained")
    axes = fig.subplots()
    for wanted, name in ((1, "links"), (0, "no links")):
        scores = [s for s, y in zip(numbers["score"], numbers["linked"], strict=True) if y == wanted]
        axes.hist(scores, bins=30, range=(0, 1), alpha=0.6, label=name)
    axes.set_xlabel("score")
    title = f"AUC {numbers['auc']:.3f}; popularity {numbers['popularity']:.3f}"
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
