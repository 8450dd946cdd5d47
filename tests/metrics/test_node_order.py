"""The test of node order: every layer and model passes, and neighbours side by side do not."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import networkx as nx
import pytest
import torch
from torch import Tensor, nn

from descend.metrics.node_order import (
    count_matrices,
    draw_order,
    edge_order_error,
    node_order_error,
    readout_order_error,
    renumber,
)
from descend.models import choose_class
from descend.nn.graph.attention import AdditiveScore, DotScore, GraphAttention, HeadMean, NetworkScore
from descend.nn.graph.combination import Addition, Concatenation, Modulation
from descend.nn.graph.context import GlobalContextBlock, VirtualEdges
from descend.nn.graph.convolution import KipfConvolution, MeanConvolution, SymmetricConvolution
from descend.nn.graph.film import NodeFiLM
from descend.nn.graph.heads import make_perceptron
from descend.nn.graph.independent import GraphIndependent
from descend.nn.graph.isomorphism import IsomorphismLayer, LearnedEpsilon
from descend.nn.graph.message_passing import JoinedUpdate, MessagePassing, NetworkMessage
from descend.nn.graph.node_edge import EdgesFirst, NodesFirst
from descend.nn.graph.readouts import READOUTS
from descend.nn.graph.sage import InclusiveMean, NeighbourLSTM, NeighbourMean, PooledMax, SAGELayer
from descend.nn.graph.weave import Weave
from descend.ops.graph.structure import Graph, Links
from tests.ops.graph.graphs import join, some_graphs

pytestmark = pytest.mark.system("node-order-equivariance")
D = 3
EXACT = 1e-10
FAMILIES = ("gcn", "gat", "graphsage", "gin", "chebnet", "polynomial_gcn", "graph_network")


def batch(width: int = D) -> Graph:
    """Graphs of different sizes with all kinds of attributes."""
    links, random = join(some_graphs()), torch.Generator().manual_seed(0)
    draw = lambda n: torch.randn(n, width, generator=random, dtype=torch.float64)
    return Graph(links, draw(links.n), draw(links.e), draw(links.graphs))


class SideBySide(nn.Module):
    """The neighbours in the order of their numbers, put end to end: what a graph layer must not do."""

    def __init__(self, most: int):
        super().__init__()
        self.most, self.linear = most, nn.Linear(most * D, D)

    def forward(self, x: Tensor, links: Links) -> Tensor:
        rows = x.new_zeros(links.n, self.most, D)
        for v in range(links.n):
            heard = x[links.source[links.target == v].sort().values]
            rows[v, : len(heard)] = heard
        return self.linear(rows.flatten(1))


def same(told: int) -> nn.Module:
    return Concatenation(make_perceptron((1 + told) * D, 4, D))


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "mean convolution": lambda: MeanConvolution(D, 4),
    "symmetric convolution": lambda: SymmetricConvolution(D, 4),
    "Kipf's convolution": lambda: KipfConvolution(D, 4),
    "attention": lambda: GraphAttention(D, 2, 4, AdditiveScore(2, 4), nn.Flatten(1)),
    "attention by dot products": lambda: GraphAttention(D, 2, 4, DotScore(), HeadMean()),
    "attention by a network": lambda: GraphAttention(D, 2, 4, NetworkScore(make_perceptron(8, 4, 1)), HeadMean()),
    "mean of neighbours": lambda: SAGELayer(NeighbourMean(D, 4), nn.Linear(D, 4)),
    "mean with the node": lambda: SAGELayer(InclusiveMean(D, 4), nn.Linear(D, 4)),
    "pooled maximum": lambda: SAGELayer(PooledMax(D, 4), nn.Linear(D, 4)),
    "isomorphism": lambda: IsomorphismLayer(make_perceptron(D, 4, 4), LearnedEpsilon(0.3)),
    "virtual edges": lambda: VirtualEdges(MeanConvolution(D, 4)),
}
BLOCKS: dict[str, Callable[[], nn.Module]] = {
    "independent": lambda: GraphIndependent(*(nn.Linear(D, 4) for _ in range(3))),
    "message passing": lambda: MessagePassing(
        NetworkMessage(make_perceptron(3 * D, 4, D)), "max", JoinedUpdate(nn.Linear(2 * D, D)), READOUTS["mean"]()
    ),
    "nodes first": lambda: NodesFirst(same(1), same(1)),
    "edges first": lambda: EdgesFirst(same(1), same(1)),
    "weave": lambda: Weave(D, D, 4, 5),
    "context": lambda: GlobalContextBlock(same(2), same(3), same(2)),
    "context by addition": lambda: GlobalContextBlock(*(Addition(D, [D] * n, nn.Linear(D, D)) for n in (2, 3, 2))),
    "context by modulation": lambda: GlobalContextBlock(*(Modulation(D, [D] * n, nn.Linear(D, D)) for n in (2, 3, 2))),
    "modulation": lambda: NodeFiLM(D, D),
}


def made(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return make().double().eval()


@pytest.mark.system("node-order-equivariance", "all-layers", "tester")
@pytest.mark.parametrize("name", LAYERS)
def test_node_layers(name: str) -> None:
    layer, graph = made(LAYERS[name]), batch()
    f = lambda graph: layer(graph.nodes, graph.links)
    assert node_order_error(f, graph, torch.Generator().manual_seed(1)) < EXACT
    assert edge_order_error(f, graph, False, torch.Generator().manual_seed(1)) < EXACT
    assert readout_order_error(f, graph, torch.Generator().manual_seed(1)) > 1e-3  # nodes do move


@pytest.mark.system("node-order-equivariance", "all-layers")
@pytest.mark.system("weave-layer", "equivariance")
@pytest.mark.system("node-edge-message-passing", "equivariance")
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str) -> None:
    """Vectors of nodes follow the nodes, those of edges the list of edges, and those of graphs nothing."""
    block, graph = made(BLOCKS[name]), batch()
    random = torch.Generator().manual_seed(1)
    nodes, edges, context = (lambda g: block(g).nodes), (lambda g: block(g).edges), (lambda g: block(g).context)
    assert node_order_error(nodes, graph, random) < EXACT
    assert edge_order_error(nodes, graph, False, random) < EXACT
    assert readout_order_error(edges, graph, random) < EXACT
    assert edge_order_error(edges, graph, True, random) < EXACT
    assert readout_order_error(context, graph, random) < EXACT
    assert edge_order_error(context, graph, False, random) < EXACT


@pytest.mark.system("node-order-equivariance", "all-layers", "tester")
@pytest.mark.system("attribute-pooling-and-readout", "readouts")
@pytest.mark.parametrize("name", READOUTS)
def test_readouts(name: str) -> None:
    readout, graph = READOUTS[name](), batch()
    f = lambda graph: readout(graph.nodes, graph.links)
    assert f(graph).shape == (graph.links.graphs, D)
    assert readout_order_error(f, graph, torch.Generator().manual_seed(1)) < EXACT


@pytest.mark.system("node-order-equivariance", "all-layers")
@pytest.mark.parametrize("name", FAMILIES)
def test_models(name: str) -> None:
    file = import_module(f"descend.models.{name}")
    assert not hasattr(file.TINY, "edges") or file.TINY.edges == 0
    whole = batch(file.TINY.inputs)
    graph = Graph(whole.links, whole.nodes, whole.edges[:, :0], whole.context[:, :0])
    for architecture in file.ARCHITECTURES:
        torch.manual_seed(0)
        model = choose_class(file, architecture)(file.TINY).double().eval()
        out = model(graph)
        y = (lambda g, model=model: model(g).nodes) if isinstance(out, Graph) else model
        error = readout_order_error if architecture.endswith(("ForGraphs", "ForEdges")) else node_order_error
        assert error(y, graph, torch.Generator().manual_seed(1)) < EXACT, architecture


@pytest.mark.system("node-order-equivariance", "concatenation", "tester")
def test_neighbours_side_by_side_fail() -> None:
    graph = batch()
    layer = made(lambda: SideBySide(int(graph.links.degree.max())))
    f = lambda graph: layer(graph.nodes, graph.links)
    assert node_order_error(f, graph, torch.Generator().manual_seed(1)) > 0.1
    first = lambda graph: graph.nodes[graph.links.sizes.cumsum(0) - graph.links.sizes]  # the first node as a readout
    assert readout_order_error(first, graph, torch.Generator().manual_seed(1)) > 0.1


@pytest.mark.system("graphsage", "lstm")
def test_the_lstm_depends_on_the_order() -> None:
    """On the order of the edge list, and not on the numbers of the nodes, when none is drawn; and on u."""
    layer, graph = made(lambda: SAGELayer(NeighbourLSTM(D, 4), nn.Linear(D, 4))), batch()
    f = lambda graph: layer(graph.nodes, graph.links)
    assert node_order_error(f, graph, torch.Generator().manual_seed(1)) < EXACT
    assert edge_order_error(f, graph, False, torch.Generator().manual_seed(1)) > 1e-3
    assert (f(graph) - layer(graph.nodes, graph.links, torch.linspace(1, 0, graph.links.e))).abs().max() > 1e-3


@pytest.mark.system("node-order-equivariance", "permutations")
def test_matrices_of_one_graph() -> None:
    """n!/|Aut|, with the symmetries as networkx finds them."""
    for graph in (nx.path_graph(4), nx.cycle_graph(5), nx.star_graph(4), nx.complete_graph(4), nx.bull_graph()):
        orders, matrices = count_matrices(torch.tensor(nx.to_numpy_array(graph)))
        symmetries = sum(1 for _ in nx.isomorphism.GraphMatcher(graph, graph).isomorphisms_iter())
        assert matrices * symmetries == orders


def test_a_renumbered_graph_is_the_same_graph() -> None:
    graph = batch()
    order = draw_order(graph.links, torch.Generator().manual_seed(2))
    again = renumber(graph, order)
    assert torch.equal(again.links.owner, graph.links.owner)
    assert torch.equal(again.links.adjacency(), graph.links.adjacency()[order][:, order])
    assert not torch.equal(order, torch.arange(graph.links.n))
