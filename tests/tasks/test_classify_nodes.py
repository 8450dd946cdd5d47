"""Nodes: which count, what is kept, and that the whole graph, a cut of it and sampled trees say the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.data.graphs.embedded import load_planted
from descend.data.graphs.sampling import NeighbourSampler
from descend.data.streams.batches import take_examples
from descend.engine.evaluation import score_set
from descend.models import gcn, graphsage
from descend.tasks.classify_nodes import ClassifyFirstNodes, ClassifyNodes
from tests.close import close
from tests.tasks.graph_cases import with_node_classes


def task() -> ClassifyNodes:
    torch.manual_seed(0)
    return ClassifyNodes(gcn.GCNForNodes(gcn.TINY).eval())


def test_only_nodes_with_a_class_count() -> None:
    found, batch = task(), with_node_classes()
    known = batch["y"] >= 0
    logits = found.logits(batch)
    expected = torch.nn.functional.cross_entropy(logits[known], batch["y"][known])
    [move] = found.moves(batch)
    close(move.value().total(), expected)
    assert move.units["loss"] == known.sum()
    scores = score_set(found, [batch])
    close(scores["accuracy"], (logits.argmax(1) == batch["y"])[known].double().mean())


def test_a_graph_without_a_class_changes_nothing_and_alone_costs_nothing() -> None:
    found, batch = task(), with_node_classes()
    others = take_examples(batch, torch.tensor([0, 1, 3, 4, 5, 6, 7]))
    assert score_set(found, [batch]) == pytest.approx(score_set(found, [others]))
    [move] = found.moves(take_examples(batch, torch.tensor([2])))
    assert move.value().total() == 0


@pytest.mark.system("graph-task-levels", "sizes")
def test_trained_on_one_graph_applied_to_one_of_another_size() -> None:
    found, batch = task(), with_node_classes()
    sizes = torch.bincount(batch["nodes_owner"])
    together = found.logits(batch).split(sizes.tolist())
    for g in range(len(sizes)):
        close(found.logits(take_examples(batch, torch.tensor([g]))), together[g])
    assert len({sum(p.numel() for p in task().parameters()) for _ in sizes}) == 1


def test_trees_with_all_neighbours_are_the_whole_graph() -> None:
    found = load_planted(120)
    torch.manual_seed(0)
    model = graphsage.GraphSAGEForNodes(replace(graphsage.TINY, inputs=found.graph.nodes.shape[1])).eval()
    whole = {**found.graph.batch(), "y": found.y, "y_owner": torch.zeros(120, dtype=torch.long)}
    rows = torch.tensor([3, 50, 119])
    trees = NeighbourSampler(found.graph, found.y, (0, 0))(rows, 0, 0)
    close(ClassifyFirstNodes(model).logits(trees), ClassifyNodes(model).logits(whole)[rows])
