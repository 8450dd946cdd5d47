"""GIN: sums of every layer end to end, beside PyTorch Geometric's layers; nodes and graphs are classified."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GINConv, global_add_pool

from descend.models import load
from descend.models.gin import ARCHITECTURES, TINY, TINY_INPUT, GINForGraphs, GINForNodes
from descend.ops.graph.structure import Graph
from tests.close import close
from tests.nn.graph.cases import list_edges, some_graph
from tests.ops.graph.graphs import join

pytestmark = pytest.mark.system("gin")


@pytest.mark.system("gin", "model", "epsilon")
def test_published_network() -> None:
    """f with a batch norm in it, one behind it, and the sums of the input and of every layer."""
    graph, model = some_graph(nodes=TINY.inputs), GINForGraphs(TINY).double()
    with torch.no_grad():
        for layer in model.layers:
            layer.epsilon.value.fill_(0.25)
    x, sums = graph.nodes, [global_add_pool(graph.nodes, graph.links.owner)]
    for layer, norm in zip(model.layers, model.norms, strict=True):
        peer = GINConv(layer.f, eps=0.25).double()
        x = norm(peer(x, list_edges(graph.links))).relu()
        sums.append(global_add_pool(x, graph.links.owner))
    close(model(graph), model.predict(torch.cat(sums, dim=1)))
    assert model.predict.in_features == TINY.inputs + TINY.depth * TINY.width
    parts = model.predict.weight.split([TINY.inputs, *[TINY.width] * TINY.depth], dim=1)
    each = sum((h @ w.t() for h, w in zip(sums, parts, strict=True)), model.predict.bias)
    close(model(graph), each)  # as published: one linear map for each layer, added up


@pytest.mark.system("gin", "epsilon")
def test_epsilon() -> None:
    fixed, learned = (GINForGraphs(replace(TINY, epsilon=name)) for name in ("fixed", "learned"))
    assert len(list(learned.parameters())) == len(list(fixed.parameters())) + TINY.depth
    learned.load_state_dict({**learned.state_dict(), **fixed.state_dict()})
    assert torch.equal(learned(TINY_INPUT()), fixed(TINY_INPUT()))  # it starts at 0
    with pytest.raises(ValueError, match="epsilon 'none' is unknown"):
        replace(TINY, epsilon="none")


def cycles_and_trees() -> tuple[Graph, Tensor]:
    """Graphs that differ in degrees only by their shape: 0 for a path, 1 for a cycle, 2 for a star."""
    graphs = [make(n) for n in range(4, 12) for make in (nx.path_graph, nx.cycle_graph, lambda n: nx.star_graph(n - 1))]
    links = join(graphs)
    ones = torch.ones(links.n, 1)
    return Graph(links, ones, ones.new_zeros(links.e, 0), ones.new_zeros(links.graphs, 0)), torch.arange(24) % 3


@pytest.mark.system("gin", "model")
def test_graphs_are_classified() -> None:
    """By links alone: every node has the same attribute."""
    graph, truth = cycles_and_trees()
    torch.manual_seed(0)
    model = GINForGraphs(replace(TINY, inputs=1, width=16))
    fit(model, graph, truth)
    assert (model(graph).argmax(1) == truth).double().mean() > 0.95


@pytest.mark.system("gin", "model")
def test_nodes_are_classified() -> None:
    """Ends of paths, nodes with two neighbours, and centres of stars."""
    graph, _ = cycles_and_trees()
    truth = (graph.links.degree - 1).clamp(max=2)
    torch.manual_seed(0)
    model = GINForNodes(replace(TINY, inputs=1, width=16))
    fit(model, graph, truth)
    assert (model(graph).argmax(1) == truth).double().mean() > 0.95


def fit(model: nn.Module, graph: Graph, truth: Tensor) -> None:
    optim = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(80):
        optim.zero_grad()
        F.cross_entropy(model(graph), truth).backward()
        optim.step()


def test_every_class_is_saved_and_loaded(tmp_path: Path) -> None:
    graph = TINY_INPUT()
    for name, kind in ARCHITECTURES.items():
        model = kind(TINY).eval()
        model.save_pretrained(tmp_path / name)
        again = load(tmp_path / name)
        assert type(again) is kind
        assert torch.equal(again(graph), model(graph))
