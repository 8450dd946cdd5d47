"""Pooling between the attributes of a graph: what nodes, edges and whole graphs hold, brought to one another.

    ρ_{E→V}   each node gets Σ of the edges that lead to it        ρ_{V→E}   each edge gets Σ of its two end nodes
    ρ_{V→U}   each graph gets Σ of its nodes                       ρ_{E→U}   each graph gets Σ of its edges
    ρ_{V→V}   each node gets Σ of its neighbours                   ρ_{U→V}, ρ_{U→E}   each gets its graph's context

An undirected edge is two edges, so every edge of a node leads to it once, and ρ_{E→U} counts it twice.

Systems: attribute-pooling-and-readout
"""

from __future__ import annotations

from torch import Tensor

from descend.ops.graph.aggregate import sum_groups, sum_pairs, take_sources
from descend.ops.graph.structure import Links


def pool_edges_to_nodes(edges: Tensor, links: Links) -> Tensor:
    """(e, k) -> (n, k)"""
    return sum_pairs(edges, links.arrivals)


def pool_nodes_to_edges(nodes: Tensor, links: Links) -> Tensor:
    """(n, d) -> (e, d)"""
    return take_sources(nodes, links) + take_sources(nodes, links.reversed)


def pool_nodes_to_context(nodes: Tensor, links: Links) -> Tensor:
    """(n, d) -> (g, d)"""
    return sum_pairs(nodes, links.members)


def pool_edges_to_context(edges: Tensor, links: Links) -> Tensor:
    """(e, k) -> (g, k)"""
    return sum_groups(edges, links.edge_owner, links.graphs)


def pool_neighbours(nodes: Tensor, links: Links) -> Tensor:
    """(n, d) -> (n, d)"""
    return sum_pairs(nodes, links)


def spread_to_nodes(context: Tensor, links: Links) -> Tensor:
    """(g, u) -> (n, u)"""
    return take_sources(context, links.members.reversed)


def spread_to_edges(context: Tensor, links: Links) -> Tensor:
    """(g, u) -> (e, u)"""
    return context.index_select(0, links.edge_owner)
