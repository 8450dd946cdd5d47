"""What a table of graphs says: how many graphs, nodes and edges, and the degrees.

    mean degree = 2E / N of E undirected edges (E / N when each direction is counted as one)
    density     = entries of the edge list that are stored / n² entries of the matrix

Systems: graph-data-structure
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from descend.data.graphs.attributed import AttributedGraph


class GraphStatistics(NamedTuple):
    """The row of a table. Edges are undirected ones, unless the graphs are directed; degrees count what leads to a
    node."""

    graphs: int
    nodes: int
    edges: int
    least: int
    mean: float
    most: int
    isolated: int
    """Nodes without any edge."""


def measure_graphs(graphs: Sequence[AttributedGraph]) -> GraphStatistics:
    """Of a graph, [graph], or of many."""
    incoming = torch.cat([count_degrees(len(graph), graph.edges[:, 1]) for graph in graphs])
    outgoing = torch.cat([count_degrees(len(graph), graph.edges[:, 0]) for graph in graphs])
    if not len(incoming):
        return GraphStatistics(len(graphs), 0, 0, 0, 0.0, 0, 0)
    return GraphStatistics(
        len(graphs),
        len(incoming),
        sum(len(graph.pairs) for graph in graphs),
        int(incoming.min()),
        float(incoming.double().mean()),
        int(incoming.max()),
        int(((incoming + outgoing) == 0).sum()),
    )


def count_degrees(n: int, ends: Tensor) -> Tensor:
    """How many edges have their end at each node."""
    return torch.bincount(ends, minlength=n)


def mean_degree(nodes: float, edges: float) -> float:
    """2E / N"""
    return 2 * edges / nodes


def density(nodes: float, stored: float) -> float:
    """The share of the n² entries of a matrix that `stored` directed edges fill."""
    return stored / nodes**2
