"""Message passing as modules: the named layers are choices of them; k layers reach k hops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.metrics.node_order import node_order_error
from descend.nn.graph.attention import AdditiveScore, GraphAttention
from descend.nn.graph.convolution import KipfConvolution, MeanConvolution, SymmetricConvolution
from descend.nn.graph.heads import make_perceptron
from descend.nn.graph.isomorphism import IsomorphismLayer, LearnedEpsilon
from descend.nn.graph.message_passing import (
    AddedUpdate,
    AttendedMessage,
    BalancedMessage,
    HeardUpdate,
    JoinedUpdate,
    MessagePassing,
    NetworkMessage,
    SourceMessage,
)
from descend.nn.graph.readouts import READOUTS
from descend.nn.graph.sage import NeighbourMean, PooledMax, SAGELayer
from descend.ops.graph.structure import Graph
from tests.close import close
from tests.nn.graph.cases import path, reach, some_graph

pytestmark = pytest.mark.system("message-passing")
D, OUT = 5, 4


def looped(graph: Graph) -> Graph:
    """With loops, which carry no attributes."""
    return Graph(graph.links.looped, graph.nodes, graph.edges.new_zeros(graph.links.looped.e, 0), graph.context)


def side_by_side(*weights: Tensor) -> nn.Linear:
    """One matrix on vectors end to end."""
    whole = nn.Linear(sum(w.shape[1] for w in weights), len(weights[0]), bias=False).double()
    whole.weight = nn.Parameter(torch.cat(weights, dim=1).detach())
    return whole


class Score(nn.Module):
    """LeakyReLU(aᵀ [W h_v ‖ W h_u])"""

    def __init__(self, a: Tensor):
        super().__init__()
        self.a = a

    def forward(self, ends: Tensor) -> Tensor:
        return F.leaky_relu(ends @ self.a, 0.2)[:, None]


@pytest.mark.system("message-passing", "generic")
def test_convolutions_are_instances() -> None:
    graph = some_graph()
    kipf = KipfConvolution(D, OUT).double()
    generic = MessagePassing(BalancedMessage(), "sum", HeardUpdate(kipf.linear))
    close(generic(looped(graph)).nodes, kipf(graph.nodes, graph.links))
    for kind, message, aggregation in (
        (MeanConvolution, SourceMessage(), "mean"),
        (SymmetricConvolution, BalancedMessage(), "sum"),
    ):
        layer = kind(D, OUT).double()
        update = JoinedUpdate(side_by_side(layer.neighbours.weight, layer.own.weight))
        close(MessagePassing(message, aggregation, update)(graph).nodes, layer(graph.nodes, graph.links))


@pytest.mark.system("message-passing", "generic")
def test_sage_is_an_instance() -> None:
    graph = some_graph()
    mean = SAGELayer(NeighbourMean(D, OUT), nn.Linear(D, OUT, bias=False)).double()
    update = JoinedUpdate(side_by_side(mean.neighbours.linear.weight, mean.own.weight))
    close(MessagePassing(SourceMessage(), "mean", update)(graph).nodes, mean(graph.nodes, graph.links))
    largest = SAGELayer(PooledMax(D, OUT), nn.Linear(D, OUT, bias=False)).double()
    pool = largest.neighbours.pool
    message = NetworkMessage(nn.Sequential(side_by_side(pool.weight, torch.zeros(OUT, D + 4)), nn.ReLU()))
    update = JoinedUpdate(side_by_side(largest.neighbours.linear.weight, largest.own.weight))
    close(MessagePassing(message, "max", update)(graph).nodes, largest(graph.nodes, graph.links))


@pytest.mark.system("message-passing", "generic")
def test_attention_is_an_instance() -> None:
    graph = some_graph()
    layer = GraphAttention(D, 1, OUT, AdditiveScore(1, OUT), nn.Flatten(1)).double()
    a = torch.cat([layer.score.target[0], layer.score.source[0]])
    generic = MessagePassing(AttendedMessage(layer.linear, Score(a)), "sum", HeardUpdate(nn.Identity()))
    close(generic(looped(graph)).nodes + layer.bias, layer(graph.nodes, graph.links))


@pytest.mark.system("message-passing", "generic")
def test_isomorphism_is_an_instance_and_has_a_readout() -> None:
    graph = some_graph()
    layer = IsomorphismLayer(make_perceptron(D, 6, OUT), LearnedEpsilon(0.3)).double()
    readout = READOUTS["sum"]()
    generic = MessagePassing(SourceMessage(), "sum", AddedUpdate(layer.f, layer.epsilon), readout)
    found, nodes = generic(graph), layer(graph.nodes, graph.links)
    close(found.nodes, nodes)
    close(found.context, readout(nodes, graph.links))
    assert found.links is graph.links
    assert torch.equal(found.edges, graph.edges)
    without = MessagePassing(SourceMessage(), "sum", AddedUpdate(layer.f, layer.epsilon))
    assert torch.equal(without(graph).context, graph.context)


@pytest.mark.system("message-passing", "aggregations", "generic")
@pytest.mark.parametrize("aggregation", ["sum", "mean", "max"])
def test_any_network_may_send(aggregation: str) -> None:
    """Message f(h_u, h_v, e_uv) and update g(h_v, m_v), edge by edge."""
    graph = some_graph()
    f, g = make_perceptron(2 * D + 4, 6, 3).double(), make_perceptron(3 + D, 6, OUT).double()
    layer = MessagePassing(NetworkMessage(f), aggregation, JoinedUpdate(g))
    assert node_order_error(lambda graph: layer(graph).nodes, graph, torch.Generator().manual_seed(0)) < 1e-10
    found, h = layer(graph).nodes, graph.nodes
    for v in (0, 7, int(graph.links.degree.argmin())):
        told = [
            f(torch.cat([h[graph.links.source[k]], h[v], graph.edges[k]]))
            for k in (graph.links.target == v).nonzero().flatten()
        ]
        rows = torch.stack(told) if told else torch.zeros(1, 3, dtype=torch.float64)
        heard = {"sum": rows.sum(0), "mean": rows.mean(0), "max": rows.amax(0)}[aggregation]
        close(found[v], g(torch.cat([heard, h[v]])))


@pytest.mark.system("message-passing", "reach")
@pytest.mark.parametrize("layers", [0, 1, 2, 3, 5])
def test_k_layers_reach_exactly_k_hops(layers: int) -> None:
    graph = path(9)
    stack = [MessagePassing(SourceMessage(), "sum", JoinedUpdate(nn.Linear(6, 3))).double() for _ in range(layers)]
    x = graph.nodes.requires_grad_()
    for layer in stack:
        graph = layer(graph)
    assert reach(graph.nodes[0], x) == list(range(layers + 1))
