"""Scene understanding by pruning: from all pairs of entities to the few that stand in a relation.

    entities of a scene    what each looks like and where it is (`data/toys/arena.py`): mats, fighters, judges, ..
    start                  the complete graph, n (n − 1) / 2 pairs
    score                  a network on the complete graph gives each pair logits of no relation and of four
    pruned                 pairs with a score above the threshold are left, each with its most likely relation

Trained on generated scenes, judged on new ones: the AUC of the score over all pairs, beside the AUC of how near two
entities are, and the share of the true edges that are left at the threshold ½ with their right relation. The threshold
0 keeps all pairs, 1 none. The network: mean aggregation, with a matrix of its own for the node; h_u and h_v joined.
Steps were looked at on seeds 10 and 11. In a first version of the scenes nearness alone told all edges (AUC 0.9999);
the coaches came after that, the thresholds of the claim stayed.

Systems: graph-task-labs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.toys.arena import RELATIONS, WIDTH, draw_arena
from descend.labs._evidence import Above, AtLeast, AtMost
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.metrics.ranking import find_auc
from descend.models.gcn import GCNConfig, GCNForEdges
from descend.ops.graph.pruning import complete_pairs, find_log_odds, name_relations, prune
from descend.ops.graph.structure import Graph, Links

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.10",)
PRINTED = (
    "From a fully connected graph of segmented entities, predict a score per edge and prune edges below a threshold."
)
CLAIM = (
    "A network that scores all pairs of entities of a scene finds the planted edges: AUC of at least 0.95 in new"
    " scenes, above that of their distance, and at the threshold ½ nine of ten edges are left with the right relation."
)
PREDICTIONS = (
    AtLeast("AUC", 0.95, "Of the score over all pairs in new scenes."),
    Above("lead over nearness", 0, "The AUC less that of nearness."),
    AtLeast("edges found", 0.9, "True edges left at the threshold ½ with their right relation."),
    AtMost("ends off", 0, "Pairs missing at the threshold 0, and left at 1."),
)
SCOPE = "Generated scenes of a mat, fighters and judges; steps were looked at on seeds 10 and 11."
RETUNED = (
    "In a first version of the scenes nearness alone told all edges (AUC 0.9999); coaches were"
    " added to the scenes, the thresholds stayed."
)
TAUGHT, NEW, BATCH, LEAST = 400, 100, 16, 1000
CONFIG = GCNConfig(WIDTH, 64, len(RELATIONS), depth=2, form="mean", dropout=0.0, ends="joined")
THRESHOLDS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
BUDGET = 20.0
PRICE = 100  # steps that a second of one core buys


def draw_pairs(scenes: int, seed: int) -> tuple[Graph, Tensor, Tensor]:
    """Scenes as complete graphs, all pairs (m, 2), and the relation of each (m)."""
    drawn = draw_arena(scenes, seed)
    alone = torch.zeros(0, dtype=torch.long)
    links = Links(alone, alone, drawn.owner, scenes).complete
    pairs = complete_pairs(links)
    nodes = drawn.nodes
    graph = Graph(links, nodes, nodes.new_zeros(links.e, 0), nodes.new_zeros(scenes, 0))
    return graph, pairs, drawn.relation[pairs[:, 0], pairs[:, 1]]


def score_pairs(model: GCNForEdges, graph: Graph, pairs: Tensor) -> Tensor:
    """Logits (m, 5), the same in either order of the two."""
    there, back = model(graph, pairs), model(graph, pairs.flip(1))
    return (there + back) / 2


def measure(seed: int, budget: float) -> dict[str, Any]:
    """AUC of the score and of nearness; what is kept and right by threshold."""
    steps = max(5, round(PRICE * budget))
    batches = [draw_pairs(BATCH, 10_000 * (seed + 1) + i) for i in range(TAUGHT // BATCH)]
    torch.manual_seed(seed)
    model, random = GCNForEdges(CONFIG), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        graph, pairs, y = batches[int(torch.randint(len(batches), (), generator=random))]
        return cross_entropy(score_pairs(model, graph, pairs), y).mean()

    train(model, loss, steps, lr=5e-3)
    graph, pairs, y = draw_pairs(NEW, 10_000 * (seed + 1) + TAUGHT)
    with torch.no_grad():
        logits = score_pairs(model.eval(), graph, pairs)
    z, places = find_log_odds(logits), graph.nodes[:, -2:]
    distance = (places[pairs[:, 0]] - places[pairs[:, 1]]).norm(dim=1)
    kept = [prune(z, t) for t in THRESHOLDS]
    named = [name_relations(logits, k) for k in kept]
    return {
        "auc": find_auc(z, y > 0),
        "nearness": find_auc(-distance, y > 0),
        "threshold": list(THRESHOLDS),
        "kept": [int(k.sum()) for k in kept],
        "found": [float((n == y)[y > 0].double().mean()) for n in named],
        "right": [float((n == y)[k].double().mean()) if k.any() else 1.0 for n, k in zip(named, kept, strict=True)],
        "pairs": len(y),
        "edges": int((y > 0).sum()),
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "AUC": numbers["auc"],
        "lead over nearness": numbers["auc"] - numbers["nearness"],
        "edges found": numbers["found"][numbers["threshold"].index(0.5)],
        "ends off": abs(numbers["pairs"] - numbers["kept"][0]) + numbers["kept"][-1],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """By threshold: how many pairs are left, how many true edges are found, and how many of what is left is right."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.6), layout="constrained")
    axes = fig.subplots()
    left = [kept / numbers["pairs"] for kept in numbers["kept"]]
    for name, values in (("pairs left", left), ("edges found", numbers["found"]), ("right", numbers["right"])):
        axes.plot(numbers["threshold"], values, "o-", label=name)
    axes.set_xlabel("threshold")
    axes.set_title(f"AUC {numbers['auc']:.3f}; of nearness {numbers['nearness']:.3f}", fontsize=11, loc="left")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
