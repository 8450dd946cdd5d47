"""Whether a layer or a model minds the order of nodes, which a graph does not have: for any function of graphs.

    f(P A Pᵀ, P X) = P f(A, X)        of nodes: their vectors move with them          equivariance
    f(P A Pᵀ, P X) = f(A, X)          of whole graphs                                  invariance

One graph has n!/|Aut| different adjacency matrices, one for each order that no symmetry of the graph undoes. Sum,
mean and max over neighbours pass; neighbours side by side in their order fail. The order of the edge list is
another one: vectors of edges follow it, those of nodes and graphs do not mind.

Systems: node-order-equivariance
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import torch
from torch import Tensor

from descend.ops.graph.structure import Graph, Links

Map = Callable[[Graph], Tensor]


def renumber(graph: Graph, order: Tensor) -> Graph:
    """The same graph, whose node i is node order[i] of the given one."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    old = graph.links
    links = Links(place[old.source], place[old.target], old.owner[order], old.graphs)
    return Graph(links, graph.nodes[order], graph.edges, graph.context)


def relist(graph: Graph, order: Tensor) -> Graph:
    """The same graph, whose edge k is edge order[k] of the given one."""
    old = graph.links
    links = Links(old.source[order], old.target[order], old.owner, old.graphs)
    return Graph(links, graph.nodes, graph.edges[order], graph.context)


def draw_order(links: Links, random: torch.Generator | None = None) -> Tensor:
    """A random order of the nodes of each graph (n); graphs stay where they are."""
    return (links.owner + torch.rand(links.n, generator=random, dtype=torch.float64)).argsort()


@torch.no_grad()
def node_order_error(f: Map, graph: Graph, random: torch.Generator | None = None, tries: int = 3) -> float:
    """max |f(P G) − P f(G)| of what f says of nodes (n, ..), over some orders; 0 up to rounding if it does not mind."""
    y, worst = f(graph), 0.0
    for _ in range(tries):
        order = draw_order(graph.links, random)
        worst = max(worst, float((f(renumber(graph, order)) - y[order]).abs().max()))
    return worst


@torch.no_grad()
def readout_order_error(f: Map, graph: Graph, random: torch.Generator | None = None, tries: int = 3) -> float:
    """max |f(P G) − f(G)| of what f says of graphs (g, ..), or of edges in the order of their list (e, ..)."""
    y, worst = f(graph), 0.0
    for _ in range(tries):
        worst = max(worst, float((f(renumber(graph, draw_order(graph.links, random))) - y).abs().max()))
    return worst


@torch.no_grad()
def edge_order_error(f: Map, graph: Graph, follows: bool, random: torch.Generator | None = None) -> float:
    """The same for a random order of the edge list, which the vectors of edges follow, and those of others do not."""
    order = torch.randperm(graph.links.e, generator=random)
    y = f(graph)
    return float((f(relist(graph, order)) - (y[order] if follows else y)).abs().max())


def count_matrices(adjacency: Tensor) -> tuple[int, int]:
    """n!, and how many different matrices P A Pᵀ there are among them: n!/|Aut|. Every order is tried."""
    orders = list(permutations(range(len(adjacency))))
    found = {tuple(adjacency[list(p)][:, list(p)].flatten().tolist()) for p in orders}
    return len(orders), len(found)
