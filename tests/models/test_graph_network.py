"""The graph network: attributes of any sizes, three ways to combine them, three levels, far nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from descend.models import load
from descend.models.graph_network import (
    ARCHITECTURES,
    TINY,
    TINY_INPUT,
    GraphNetwork,
    GraphNetworkForEdges,
    GraphNetworkForGraphs,
    GraphNetworkForNodes,
)
from descend.ops.graph.structure import Graph
from tests.close import close
from tests.nn.graph.cases import path, reach, some_graph

pytestmark = pytest.mark.system("global-context-block")


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same weights every time: a rectifier that is off hides whom a node hears."""
    torch.manual_seed(0)


@pytest.mark.system("global-context-block", "block", "conditioning")
@pytest.mark.parametrize("combination", ["concatenation", "addition", "modulation"])
def test_blocks_follow_each_other(combination: str) -> None:
    graph = some_graph(5, 4, 3)
    model = GraphNetwork(replace(TINY, edges=4, context=3, combination=combination)).double()
    found, expected = model(graph), model.embed(graph)
    for block in model.blocks:
        expected = block(expected)
    for attribute, rows in (("nodes", graph.links.n), ("edges", graph.links.e), ("context", graph.links.graphs)):
        y = getattr(found, attribute)
        assert torch.equal(y, getattr(expected, attribute))
        assert y.shape == (rows, TINY.width)
    with pytest.raises(ValueError, match="combination 'sum' is unknown"):
        replace(TINY, combination="sum")


@pytest.mark.system("global-context-block", "two-layers")
def test_far_nodes_interact() -> None:
    graph = path(8, TINY.inputs)
    graph = Graph(graph.links, graph.nodes.requires_grad_(), graph.edges[:, :0], graph.context[:, :0])
    assert reach(GraphNetworkForNodes(TINY).double()(graph)[0], graph.nodes) == list(range(8))


@pytest.mark.system("graph-task-levels", "heads")
def test_levels() -> None:
    graph = TINY_INPUT()
    assert GraphNetworkForNodes(TINY)(graph).shape == (8, 3)
    assert GraphNetworkForGraphs(TINY)(graph).shape == (2, 3)
    model = GraphNetworkForEdges(TINY)
    pairs = torch.tensor([(0, 1), (5, 7)])
    assert model(graph).shape == (graph.links.e, 3)
    close(model(graph, pairs), model(graph, pairs.flip(1)))


def test_graphs_of_a_batch_do_not_hear_of_each_other() -> None:
    graph = TINY_INPUT()
    x = graph.nodes.requires_grad_()
    model = GraphNetworkForGraphs(TINY)
    assert reach(model(graph)[0], x) == [0, 1, 2, 3]
    assert reach(model(graph)[1], x) == [4, 5, 6, 7]


def test_every_class_is_saved_and_loaded(tmp_path: Path) -> None:
    graph = TINY_INPUT()
    for name, kind in ARCHITECTURES.items():
        model = kind(TINY).eval()
        model.save_pretrained(tmp_path / name)
        again = load(tmp_path / name)
        assert type(again) is kind
        ours, theirs = (y.nodes if isinstance(y, Graph) else y for y in (again(graph), model(graph)))
        assert torch.equal(ours, theirs)
