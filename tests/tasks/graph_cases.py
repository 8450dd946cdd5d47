"""Eight small graphs of different sizes, and the tasks on them: nodes, whole graphs, pairs of nodes."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.models import gcn
from descend.models.mlp import MLP, MLPConfig
from descend.tasks.classify_nodes import ClassifyFirstNodes, ClassifyNodes, ClassifyNodesAlone
from descend.tasks.predict_graphs import ClassifyGraphs, RegressGraphs
from descend.tasks.predict_links import PredictLinks

B = 8
SIZES = torch.tensor([3, 5, 1, 4, 6, 2, 5, 3])


def graphs(n: int = B) -> Batch:
    """Rings of the sizes above, with a chord where there is room; the third is a node alone."""
    random = torch.Generator().manual_seed(1)
    number = torch.arange(n)
    pairs, owner = [], []
    for g, size in enumerate(SIZES[:n].tolist()):
        ring = torch.stack([torch.arange(size), (torch.arange(size) + 1) % size], dim=1)[: size if size > 1 else 0]
        chord = torch.tensor([[0, 2]])[: int(size > 3)]
        both = torch.cat([ring, chord])
        pairs.append(torch.cat([both, both.flip(1)]))
        owner.append(torch.full((len(pairs[-1]),), g))
    nodes = torch.randn(int(SIZES[:n].sum()), gcn.TINY.inputs, generator=random)
    return {
        "ids": number,
        "nodes": nodes,
        "nodes_owner": number.repeat_interleave(SIZES[:n]),
        "edges": torch.cat(pairs),
        "edges_owner": torch.cat(owner),
    }


def with_node_classes(n: int = B) -> Batch:
    """Every third node has no class, and the third graph has none at all."""
    found = graphs(n)
    y = torch.arange(len(found["nodes"])) % 3
    y = torch.where((torch.arange(len(y)) % 3 == 1) | (found["nodes_owner"] == 2), -1, y)
    return {**found, "y": y, "y_owner": found["nodes_owner"]}


def with_pairs(n: int = B) -> Batch:
    """A pair or three of each graph, linked or not; of the third none."""
    found = graphs(n)
    counts = torch.tensor([1, 3, 0, 2, 3, 1, 2, 2])[:n]
    owner = torch.arange(n).repeat_interleave(counts)
    pairs = torch.stack([torch.zeros_like(owner), 1 + torch.arange(len(owner)) % (SIZES[owner] - 1)], dim=1)
    return {**found, "pairs": pairs, "pairs_owner": owner, "y": torch.arange(len(owner)) % 2, "y_owner": owner}


def classify_nodes() -> tuple[Task, Batch]:
    return ClassifyNodes(gcn.GCNForNodes(gcn.TINY)), with_node_classes()


def classify_alone() -> tuple[Task, Batch]:
    return ClassifyNodesAlone(MLP(MLPConfig(gcn.TINY.inputs, (6,), 3))), with_node_classes()


def classify_first() -> tuple[Task, Batch]:
    return ClassifyFirstNodes(gcn.GCNForNodes(gcn.TINY)), {**graphs(), "y": torch.arange(B) % 3}


def classify_graphs() -> tuple[Task, Batch]:
    return ClassifyGraphs(gcn.GCNForGraphs(gcn.TINY)), {**graphs(), "y": torch.arange(B) % 3}


def targets() -> Tensor:
    return torch.randn(B, 2, generator=torch.Generator().manual_seed(2))


def regress_graphs() -> tuple[Task, Batch]:
    return RegressGraphs(gcn.GCNForGraphs(replace(gcn.TINY, outputs=2)), (2.0, 0.5)), {**graphs(), "y": targets()}


def predict_links() -> tuple[Task, Batch]:
    return PredictLinks(gcn.GCNForEdges(replace(gcn.TINY, outputs=1))), with_pairs()


CASES = {
    "ClassifyFirstNodes": classify_first,
    "ClassifyGraphs": classify_graphs,
    "ClassifyNodes": classify_nodes,
    "ClassifyNodesAlone": classify_alone,
    "PredictLinks": predict_links,
    "RegressGraphs": regress_graphs,
}
