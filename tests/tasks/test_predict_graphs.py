"""Whole graphs: scores in the targets' own units, and one trunk with three heads."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from descend.engine.evaluation import score_set
from descend.models import chebnet, gat, gcn, gin, graphsage
from descend.ops.graph.batches import read_graph
from descend.tasks.predict_graphs import ClassifyGraphs, RegressGraphs
from tests.close import close
from tests.tasks.graph_cases import B, graphs, targets, with_pairs


def test_errors_are_means_over_the_targets_in_their_units() -> None:
    torch.manual_seed(0)
    task = RegressGraphs(gcn.GCNForGraphs(replace(gcn.TINY, outputs=2)).eval(), (2.0, 0.5))
    batch = {**graphs(), "y": targets()}
    units = torch.tensor([2.0, 0.5])
    z, y = (task.model(read_graph(batch)) * units).detach().numpy(), (batch["y"] * units).numpy()
    scores = score_set(task, [batch])
    close(scores["mae"], mean_absolute_error(y, z))
    close(scores["rmse"], root_mean_squared_error(y, z, multioutput="uniform_average"))
    close(scores["r2"], r2_score(y, z))
    close(scores["loss"], ((z - y) / units.numpy()).__pow__(2).sum(1).mean())


def test_any_batching_gives_the_same_scores() -> None:
    from descend.data.streams.arrays import InOrder

    torch.manual_seed(0)
    task = ClassifyGraphs(gcn.GCNForGraphs(gcn.TINY).eval())
    arrays = {**graphs(), "y": torch.arange(B) % 3}
    assert score_set(task, InOrder(arrays, 3)) == pytest.approx(score_set(task, InOrder(arrays, 8)))


@pytest.mark.system("graph-task-levels", "heads")
@pytest.mark.parametrize("file", [gcn, gat, graphsage, chebnet, gin])
def test_one_trunk_and_three_heads(file: object) -> None:
    """(nodes, c), (edges, c), (graphs, c): where the trunk has the same weights, it gives the same vectors."""
    config, batch = replace(file.TINY, outputs=4), with_pairs()  # type: ignore[attr-defined]
    graph = read_graph(batch)
    heads = {name.rpartition("For")[2]: kind(config).eval() for name, kind in file.ARCHITECTURES.items()}  # type: ignore[attr-defined]
    assert heads["Nodes"](graph).shape == (graph.links.n, 4)
    assert heads["Edges"](graph).shape == (graph.links.e, 4)
    assert heads["Edges"](graph, torch.tensor([[0, 1], [5, 6]])).shape == (2, 4)
    assert heads["Graphs"](graph).shape == (B, 4)
    trunk = {k: v for k, v in heads["Graphs"].state_dict().items() if k.startswith(("layers", "norms"))}
    heads["Edges"].load_state_dict(trunk, strict=False)
    close(heads["Edges"].hidden(graph), heads["Graphs"].hidden(graph))
