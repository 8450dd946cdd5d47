"""Graphs with attributes of all kinds, for the tests of this folder."""

from __future__ import annotations

import networkx as nx
import torch
from torch import Tensor

from descend.ops.graph.structure import Graph, Links
from tests.ops.graph.graphs import join, links_of, some_graphs


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def some_graph(nodes: int = 5, edges: int = 4, context: int = 3) -> Graph:
    """Several graphs of different sizes, some nodes without neighbours."""
    return attribute(join(some_graphs()), nodes, edges, context)


def path(n: int, width: int = 3) -> Graph:
    """0 - 1 - .. - n-1"""
    return attribute(links_of(nx.path_graph(n)), width, width, width)


def attribute(links: Links, nodes: int, edges: int, context: int) -> Graph:
    sizes = ((links.n, nodes), (links.e, edges), (links.graphs, context))
    return Graph(links, *(draw(*size, seed=k) for k, size in enumerate(sizes)))


def list_edges(links: Links) -> Tensor:
    """(2, e)"""
    return torch.stack([links.source, links.target])


def reach(y: Tensor, x: Tensor) -> list[int]:
    """The nodes whose values matter to y."""
    (slope,) = torch.autograd.grad(y.sum(), x)
    return slope.abs().sum(dim=1).nonzero().flatten().tolist()
