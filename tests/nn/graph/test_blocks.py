"""Full blocks: what each attribute hears of the others, shown by equations written out and by gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from descend.metrics.node_order import edge_order_error, node_order_error
from descend.nn.graph.combination import Addition, Concatenation, Modulation
from descend.nn.graph.context import GlobalContextBlock, VirtualEdges
from descend.nn.graph.convolution import MeanConvolution
from descend.nn.graph.film import FiLM, NodeFiLM
from descend.nn.graph.heads import make_perceptron
from descend.nn.graph.independent import GraphIndependent
from descend.nn.graph.node_edge import EdgesFirst, NodesFirst
from descend.nn.graph.sage import NeighbourMean
from descend.nn.graph.weave import Weave
from descend.ops.graph.structure import Graph
from tests.close import close
from tests.nn.graph.cases import draw, path, reach, some_graph

V, E, U, W = 5, 4, 3, 6


def incidence(graph: Graph) -> tuple[Tensor, Tensor, Tensor]:
    """Who arrives where (n, e), who leaves (n, e), and who belongs where (g, n)."""
    eye = torch.eye(graph.links.n, dtype=torch.float64)
    return (
        eye[:, graph.links.target],
        eye[:, graph.links.source],
        torch.eye(graph.links.graphs, dtype=torch.float64)[:, graph.links.owner],
    )


def slopes(y: Tensor, x: Sequence[Tensor]) -> list[bool]:
    """Which of them matter."""
    return [g is not None and bool(g.abs().sum() > 0) for g in torch.autograd.grad(y.sum(), x, allow_unused=True)]


@pytest.mark.system("graph-independent-layer", "separate", "no-links")
@pytest.mark.system("graph-independent-layer")
def test_graph_independent() -> None:
    graph = some_graph()
    layer = GraphIndependent(make_perceptron(V, W, 2), make_perceptron(E, W, 3), make_perceptron(U, W, 4)).double()
    found = layer(graph)
    assert found.links is graph.links
    for f, old, new in (
        (layer.nodes, graph.nodes, found.nodes),
        (layer.edges, graph.edges, found.edges),
        (layer.context, graph.context, found.context),
    ):
        close(new, torch.stack([f(row) for row in old]))
    x = graph.nodes.requires_grad_()
    stack = GraphIndependent(make_perceptron(2, W, 2), make_perceptron(3, W, 3), nn.Identity()).double()
    for v in (0, 3, 40):
        assert reach(stack(layer(graph)).nodes[v], x) == [v]  # no other node, after two layers


@pytest.mark.system("film-conditioning")
@pytest.mark.system("film-conditioning", "identity")
def test_modulation_that_changes_nothing() -> None:
    film = FiLM(U, V).double()
    h, c = draw(8, V), draw(8, U, seed=1)
    gamma, beta = (c @ film.modulate.weight.t()).chunk(2, dim=1)
    close(film(h, c), (1 + gamma) * h + beta)
    nn.init.zeros_(film.modulate.weight)
    assert torch.equal(film(h, c), h)


@pytest.mark.system("film-conditioning", "conditions")
def test_nodes_are_modulated_by_the_context_of_their_graph() -> None:
    graph = some_graph()
    layer = NodeFiLM(U, V).double()
    found = layer(graph)
    for g in range(graph.links.graphs):
        rows = graph.links.owner == g
        close(found.nodes[rows], layer.film(graph.nodes[rows], graph.context[g]))
    context = graph.context.requires_grad_()
    assert reach(layer(graph).nodes[0], context) == [0]
    film = layer.film
    f = lambda h, c: film(h, c)
    assert torch.autograd.gradcheck(f, (draw(4, V).requires_grad_(), draw(4, U).requires_grad_()))
    assert torch.autograd.gradcheck(lambda c: layer(Graph(graph.links, graph.nodes, graph.edges, c)).nodes, (context,))


@pytest.mark.system("node-edge-message-passing")
@pytest.mark.system("node-edge-message-passing", "orders")
def test_two_orders_on_the_same_weights() -> None:
    graph = some_graph(nodes=W, edges=W)
    nodes, edges = (Concatenation(make_perceptron(2 * W, W, W)).double() for _ in range(2))
    arrive, leave, _ = incidence(graph)
    v, e = graph.nodes, graph.edges
    first = NodesFirst(nodes, edges)(graph)
    new = nodes.f(torch.cat([v, arrive @ e], 1))
    close(first.nodes, new)
    close(first.edges, edges.f(torch.cat([e, (arrive + leave).t() @ new], 1)))
    second = EdgesFirst(nodes, edges)(graph)
    new = edges.f(torch.cat([e, (arrive + leave).t() @ v], 1))
    close(second.edges, new)
    close(second.nodes, nodes.f(torch.cat([v, arrive @ new], 1)))
    assert (first.nodes - second.nodes).abs().max() > 1e-3
    assert (first.edges - second.edges).abs().max() > 1e-3


@pytest.mark.system("node-edge-message-passing", "combinations", "equivariance")
@pytest.mark.parametrize("order", [NodesFirst, EdgesFirst])
def test_attributes_of_different_sizes(order: type[nn.Module]) -> None:
    """Nodes of 5 and edges of 4: put side by side, or brought into the space of the other by a learned matrix."""
    graph = some_graph()
    new_v, new_e = (W, E) if order is NodesFirst else (V, W)
    blocks = [
        order(Concatenation(make_perceptron(V + (E if order is NodesFirst else W), W, new_v)),
              Concatenation(make_perceptron(E + (W if order is NodesFirst else V), W, new_e))),
        order(Addition(V, [E if order is NodesFirst else W], nn.Linear(V, new_v)),
              Addition(E, [W if order is NodesFirst else V], nn.Linear(E, new_e))),
    ]  # fmt: skip
    for block in blocks:
        block.double()
        found = block(graph)
        assert found.nodes.shape == (graph.links.n, new_v)
        assert found.edges.shape == (graph.links.e, new_e)
        random = torch.Generator().manual_seed(0)
        assert node_order_error(lambda g, block=block: block(g).nodes, graph, random) < 1e-10
        assert edge_order_error(lambda g, block=block: block(g).edges, graph, True, random) < 1e-10
    x, t = draw(7, V), draw(7, E, seed=1)
    addition = Addition(V, [E], nn.Linear(V, 2)).double()
    close(addition(x, t), addition.f(x + t @ addition.maps[0].weight.t()))


@pytest.mark.system("weave-layer")
@pytest.mark.system("weave-layer", "four-paths")
def test_four_paths_from_the_old_values() -> None:
    graph = some_graph()
    layer = Weave(V, E, 6, 7).double()
    arrive, leave, _ = incidence(graph)
    v, e = graph.nodes, graph.edges
    found = layer(graph)
    w = dict(layer.named_parameters())
    nodes = v @ w["node_to_node.weight"].t() + w["node_to_node.bias"] + arrive @ e @ w["edge_to_node.weight"].t()
    edges = e @ w["edge_to_edge.weight"].t() + w["edge_to_edge.bias"]
    close(found.nodes, nodes)
    close(found.edges, edges + (arrive + leave).t() @ v @ w["node_to_edge.weight"].t())
    ends = (graph.nodes.requires_grad_(), graph.edges.requires_grad_())
    assert slopes(layer(graph).nodes, ends) == [True, True]
    assert slopes(layer(graph).edges, ends) == [True, True]
    line = path(3, W)
    x = line.nodes.requires_grad_()
    assert reach(Weave(W, W, W, W).double()(line).nodes[0], x) == [0]  # new edges would have told it of node 1


@pytest.mark.system("weave-layer", "no-cross")
def test_without_the_cross_paths() -> None:
    graph = some_graph()
    layer = Weave(V, E, 6, 7).double()
    for cross in (layer.edge_to_node, layer.node_to_edge):
        nn.init.zeros_(cross.weight)
    alone = GraphIndependent(layer.node_to_node, layer.edge_to_edge, nn.Identity())(graph)
    close(layer(graph).nodes, alone.nodes)
    close(layer(graph).edges, alone.edges)


def concatenated(width: int, told: Sequence[int], f: nn.Module) -> nn.Module:
    """With a network for all of them."""
    return Concatenation(nn.Linear(width + sum(told), W))


CONDITIONING: dict[str, Callable[[int, Sequence[int], nn.Module], nn.Module]] = {
    "concatenation": concatenated,
    "addition": Addition,
    "modulation": Modulation,
}


def context_block(name: str, v: int = V, e: int = E, u: int = U) -> GlobalContextBlock:
    """Widths v, e, u in, W out."""
    combine = CONDITIONING[name]
    block = GlobalContextBlock(
        combine(e, [v, u], nn.Linear(e, W)), combine(v, [W, v, u], nn.Linear(v, W)), combine(u, [W, W], nn.Linear(u, W))
    )
    return block.double()


@pytest.mark.system("global-context-block")
@pytest.mark.system("global-context-block", "block", "conditioning")
@pytest.mark.parametrize("name", CONDITIONING)
def test_context_block(name: str) -> None:
    graph, block = some_graph(), context_block(name)
    arrive, leave, belong = incidence(graph)
    v, e, u = graph.nodes, graph.edges, graph.context
    edges = block.edges(e, (arrive + leave).t() @ v, (belong @ arrive).t() @ u)
    nodes = block.nodes(v, arrive @ edges, arrive @ leave.t() @ v, belong.t() @ u)
    context = block.context(u, belong @ nodes, belong @ arrive @ edges)
    found = block(graph)
    close(found.edges, edges)
    close(found.nodes, nodes)
    close(found.context, context)
    parts = [x.requires_grad_() for x in (v, e, u)]
    for attribute in ("nodes", "edges", "context"):
        assert slopes(getattr(block(graph), attribute).square(), parts) == [True, True, True]


@pytest.mark.system("global-context-block", "conditioning")
def test_ways_of_conditioning() -> None:
    x, told = draw(7, V), (draw(7, E, seed=1), draw(7, U, seed=2))
    f = nn.Linear(V + E + U, W).double()
    close(Concatenation(f)(x, *told), f(torch.cat([x, *told], 1)))
    addition = Addition(V, [E, U], nn.Identity()).double()
    close(addition(x, *told), x + told[0] @ addition.maps[0].weight.t() + told[1] @ addition.maps[1].weight.t())
    modulation = Modulation(V, [E, U], nn.Identity()).double()
    close(modulation(x, *told), modulation.film(x, torch.cat(told, 1)))


@pytest.mark.system("global-context-block", "two-layers")
def test_any_two_nodes_interact_after_two_layers() -> None:
    """The ends of a path of eight."""
    line = path(8, W)
    x = line.nodes.requires_grad_()
    blocks = [context_block("concatenation", W, W, W) for _ in range(2)]
    assert reach(blocks[0](line).nodes[0], x) == [0, 1]
    assert reach(blocks[1](blocks[0](line)).nodes[0], x) == list(range(8))
    without = [EdgesFirst(*(Concatenation(nn.Linear(2 * W, W)) for _ in range(2))).double() for _ in range(2)]
    assert reach(without[1](without[0](line)).nodes[0], x) == [0, 1, 2]


@pytest.mark.system("global-context-block", "virtual-edges")
def test_virtual_edges_are_the_complete_graph() -> None:
    graph = some_graph()
    same = graph.links.owner[:, None] == graph.links.owner
    complete = (same & ~torch.eye(graph.links.n, dtype=torch.bool)).double()
    layer = MeanConvolution(V, W).double()
    mean = complete / complete.sum(1, keepdim=True).clamp_min(1) @ graph.nodes
    expected = layer.neighbours(mean) + layer.own(graph.nodes)
    close(VirtualEdges(layer)(graph.nodes, graph.links), expected)
    x = graph.nodes.requires_grad_()
    own = (graph.links.owner == 0).nonzero().flatten().tolist()
    told = VirtualEdges(NeighbourMean(V, W).double())(x, graph.links)
    assert reach(told[0], x) == own[1:]  # every other node of its graph
