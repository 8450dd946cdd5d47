"""Graphs of networkx as ours, for the tests of this folder and others."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import torch
from torch import Tensor

from descend.ops.graph.structure import Links


def links_of(graph: nx.Graph) -> Links:
    """One graph; an undirected edge leads both ways, one from a node to itself is there once."""
    return join([graph])


def join(graphs: Sequence[nx.Graph]) -> Links:
    """A batch of graphs with nodes 0..n-1 each."""
    edges, owner, first = [torch.zeros(0, 2, dtype=torch.long)], [], 0
    for i, graph in enumerate(graphs):
        directed = graph if graph.is_directed() else graph.to_directed()
        pairs = torch.tensor(sorted(directed.edges), dtype=torch.long).view(-1, 2)
        edges.append(pairs + first)
        owner += [i] * len(graph)
        first += len(graph)
    source, target = torch.cat(edges).T
    return Links(source, target, torch.tensor(owner, dtype=torch.long), len(graphs))


def some_graphs() -> list[nx.Graph]:
    """Different in size, with isolated nodes and several components."""
    alone = nx.disjoint_union(nx.path_graph(3), nx.empty_graph(2))
    return [nx.karate_club_graph(), nx.path_graph(8), nx.gnp_random_graph(20, 0.2, seed=1), alone, nx.star_graph(5)]


def grid(side: int = 5) -> nx.Graph:
    """Pixels with 8 neighbours each."""
    squares = nx.strong_product(nx.path_graph(side), nx.path_graph(side))
    return nx.convert_node_labels_to_integers(squares, ordering="sorted")


def permuted(links: Links, to: Tensor) -> Links:
    """Node v becomes to_v, within its graph; the edges are shuffled."""
    order = torch.randperm(links.e, generator=torch.Generator().manual_seed(0))
    return Links(to[links.source][order], to[links.target][order], links.owner, links.graphs)
