"""GraphSAGE's layer with each aggregator, beside PyTorch Geometric's and by hand."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from torch import nn
from torch_geometric.nn import SAGEConv

from descend.nn.graph.sage import (
    InclusiveMean,
    NeighbourLSTM,
    NeighbourMean,
    PooledMax,
    SAGELayer,
    UnitLength,
    line_up,
)
from descend.ops.graph.structure import Links
from tests.close import close
from tests.nn.graph.cases import attribute, list_edges, some_graph
from tests.ops.graph.graphs import links_of

pytestmark = pytest.mark.system("graphsage")
D, OUT = 5, 4


def fill(peer: SAGEConv, layer: SAGELayer) -> None:
    with torch.no_grad():
        peer.lin_l.weight.copy_(layer.neighbours.linear.weight)
        peer.lin_r.weight.copy_(layer.own.weight)


@pytest.mark.system("graphsage", "mean")
def test_mean() -> None:
    """[AGG ‖ h_v] with one matrix, as published; DLN's mean contains h_v, so the looped graph gives it to theirs."""
    graph = some_graph()
    layer = SAGELayer(NeighbourMean(D, OUT), nn.Linear(D, OUT, bias=False)).double()
    peer = SAGEConv(D, OUT, bias=False).double()
    fill(peer, layer)
    close(layer(graph.nodes, graph.links), peer(graph.nodes, list_edges(graph.links)))
    inclusive = SAGELayer(InclusiveMean(D, OUT), nn.Linear(D, OUT, bias=False)).double()
    peer = SAGEConv((OUT, D), OUT, bias=False).double()
    fill(peer, inclusive)
    pooled = inclusive.neighbours.pool(graph.nodes)
    close(inclusive(graph.nodes, graph.links), peer((pooled, graph.nodes), list_edges(graph.links.looped)))
    v, heard = 0, graph.links.source[graph.links.target == 0]
    agg = inclusive.neighbours.pool.weight @ (graph.nodes[v] + graph.nodes[heard].sum(0)) / (1 + len(heard))
    close(inclusive.neighbours.gather(graph.nodes, graph.links)[v], agg)
    joined = torch.cat([inclusive.neighbours.linear.weight, inclusive.own.weight], dim=1)
    close(inclusive(graph.nodes, graph.links)[v], joined @ torch.cat([agg, graph.nodes[v]]))


@pytest.mark.system("graphsage", "max")
def test_max() -> None:
    graph = some_graph()
    layer = SAGELayer(PooledMax(D, D), nn.Linear(D, D, bias=False)).double()
    peer = SAGEConv(D, D, aggr="max", project=True, bias=False).double()
    fill(peer, layer)
    with torch.no_grad():
        layer.neighbours.pool.bias.copy_(torch.linspace(-1, 1, D))
        peer.lin.weight.copy_(layer.neighbours.pool.weight)
        peer.lin.bias.copy_(layer.neighbours.pool.bias)
    y, expected = layer(graph.nodes, graph.links), peer(graph.nodes, list_edges(graph.links))
    close(y, expected)
    parameters = list(layer.parameters())
    found = torch.autograd.grad(y.square().sum(), parameters)
    theirs = torch.autograd.grad(
        expected.square().sum(), [peer.lin.weight, peer.lin.bias, peer.lin_l.weight, peer.lin_r.weight]
    )
    for a, b in zip(found, theirs, strict=True):
        close(a, b)


@pytest.mark.system("graphsage", "lstm")
def test_lstm_where_all_have_three_neighbours() -> None:
    """Theirs reads edges sorted by target, and pads short lists with zeros that it reads, too; here there are none."""
    graph = attribute(links_of(nx.petersen_graph()), D, 1, 1)
    order = graph.links.incoming.order
    links = Links(graph.links.source[order], graph.links.target[order], graph.links.owner, graph.links.graphs)
    layer = SAGELayer(NeighbourLSTM(D, D), nn.Linear(D, D, bias=False)).double().eval()
    peer = SAGEConv(D, D, aggr="lstm", bias=False).double()
    fill(peer, layer)
    peer.aggr_module.lstm.load_state_dict(layer.neighbours.lstm.state_dict())
    expected = peer(graph.nodes, list_edges(links))
    close(layer(graph.nodes, links), expected)
    mixed = torch.randperm(links.e, generator=torch.Generator().manual_seed(0))
    other = Links(links.source[mixed], links.target[mixed], links.owner, links.graphs)
    close(layer(graph.nodes, other, mixed / links.e), expected)  # u says the order again
    assert (layer(graph.nodes, other) - expected).abs().max() > 1e-3
    torch.manual_seed(0)
    first, second = layer.train()(graph.nodes, links), layer(graph.nodes, links)
    assert (first - second).abs().max() > 1e-3  # drawn anew in training
    torch.manual_seed(0)
    assert torch.equal(layer(graph.nodes, links), first)


@pytest.mark.system("graphsage", "lstm")
def test_lstm_node_by_node() -> None:
    graph = some_graph()
    told = NeighbourLSTM(D, OUT).double()
    u = torch.rand(graph.links.e, generator=torch.Generator().manual_seed(1))
    found = told.gather(graph.nodes, graph.links, u)
    for v in range(graph.links.n):
        edges = (graph.links.target == v).nonzero().flatten()
        expected = torch.zeros(OUT).double()
        if len(edges):
            expected = told.lstm(graph.nodes[graph.links.source[edges[u[edges].argsort()]]])[0][-1]
            close(found[v], expected)
        else:
            assert torch.equal(found[v], expected)


def test_order_of_reading() -> None:
    """Node 2 has three neighbours, node 0 one, node 1 two."""
    target = torch.tensor([2, 1, 2, 0, 1, 2])
    links = Links(torch.tensor([0, 0, 1, 1, 2, 3]), target, torch.zeros(4, dtype=torch.long), 1)
    edges, sizes, readers = line_up(links)
    assert sizes.tolist() == [3, 2, 1]
    assert readers.tolist() == [2, 1, 0]
    assert edges.tolist() == [0, 1, 3, 2, 4, 5]
    back = line_up(links, torch.tensor([0.9, 0.8, 0.5, 0.3, 0.2, 0.1]))[0]
    assert back.tolist() == [5, 4, 3, 2, 1, 0]
    none = Links(target[:0], target[:0], torch.zeros(4, dtype=torch.long), 1)
    assert SAGELayer(NeighbourLSTM(D, 2), nn.Linear(D, 2))(torch.ones(4, D), none).shape == (4, 2)


@pytest.mark.system("graphsage", "normalized")
def test_vectors_of_length_1() -> None:
    graph = some_graph()
    layer = SAGELayer(NeighbourMean(D, OUT), nn.Linear(D, OUT, bias=False)).double()
    peer = SAGEConv(D, OUT, bias=False, normalize=True).double()
    fill(peer, layer)
    y = UnitLength()(layer(graph.nodes, graph.links))
    close(y, peer(graph.nodes, list_edges(graph.links)))
    close(y.norm(dim=1), torch.ones(graph.links.n).double())
