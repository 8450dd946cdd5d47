"""A graph, or a batch of graphs laid end to end: attributes of nodes V, of edges E, and of each whole graph U.

    edge k carries a message from node source[k] to node target[k]        N(v) = { source[k] : target[k] = v }

An undirected edge is two edges. A batch of graphs is one graph without edges between its parts; `owner` says which
graph a node belongs to, in order. So a layer treats a batch as it treats one graph, and gives the same numbers.

    A_vu = 1 where an edge leads from u to v        degree D_v = Σ_u A_vu, the edges that lead to v

Systems: graph-data-structure
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from descend.native import graph as native


class Incidence:
    """Pairs: pair k leads from source[k] in 0..sources-1 to target[k] in 0..targets-1. What is derived is kept."""

    def __init__(self, source: Tensor, target: Tensor, sources: int, targets: int):
        self.source, self.target, self.sources, self.targets = source, target, sources, targets

    @property
    def e(self) -> int:
        """The number of pairs."""
        return len(self.source)

    @cached_property
    def incoming(self) -> Rows:
        """The pairs in the order of their targets."""
        return group(self.target, self.targets)

    @cached_property
    def senders(self) -> Tensor:
        """The sources in the order of `incoming` (e)."""
        return self.source[self.incoming.order]

    @property
    def outgoing(self) -> Rows:
        """The pairs in the order of their sources."""
        return self.reversed.incoming

    @cached_property
    def reversed(self) -> Incidence:
        """Every pair the other way round, in the same order."""
        other = Incidence(self.target, self.source, self.targets, self.sources)
        other.__dict__["reversed"] = self
        return other


class Links(Incidence):
    """The edges of a graph of n nodes, and what is derived from them, computed once when it is first asked for."""

    def __init__(self, source: Tensor, target: Tensor, owner: Tensor, graphs: int):
        super().__init__(source, target, len(owner), len(owner))
        self.owner, self.graphs = owner, graphs

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.owner)

    @cached_property
    def degree(self) -> Tensor:
        """How many edges lead to each node (n)."""
        return self.incoming.counts

    @cached_property
    def sizes(self) -> Tensor:
        """How many nodes each graph has (g)."""
        return torch.bincount(self.owner, minlength=self.graphs)

    @cached_property
    def edge_owner(self) -> Tensor:
        """The graph of each edge (e)."""
        return self.owner[self.target]

    @cached_property
    def members(self) -> Incidence:
        """Which graph each node belongs to."""
        return Incidence(torch.arange(self.n, device=self.owner.device), self.owner, self.n, self.graphs)

    @cached_property
    def arrivals(self) -> Incidence:
        """Which node each edge leads to."""
        return Incidence(torch.arange(self.e, device=self.owner.device), self.target, self.e, self.n)

    @cached_property
    def looped(self) -> Links:
        """With one more edge from every node to itself, behind the others."""
        own = torch.arange(self.n, device=self.owner.device)
        return Links(torch.cat([self.source, own]), torch.cat([self.target, own]), self.owner, self.graphs)

    @cached_property
    def arranged(self) -> Links:
        """The same edges in the order of their targets: of edge k here it is edge incoming.order[k]."""
        return Links(self.senders, self.target[self.incoming.order], self.owner, self.graphs)

    @cached_property
    def complete(self) -> Links:
        """An edge from every node to every other node of its graph: the virtual edges of a small graph."""
        first = self.sizes.cumsum(0) - self.sizes
        fan = self.sizes[self.owner]
        target = torch.repeat_interleave(torch.arange(self.n, device=self.owner.device), fan)
        place = torch.arange(len(target), device=self.owner.device) - torch.repeat_interleave(fan.cumsum(0) - fan, fan)
        source = first[self.owner][target] + place
        return Links(source[source != target], target[source != target], self.owner, self.graphs)

    @cached_property
    def reversed(self) -> Links:
        """Every edge the other way round, in the same order."""
        other = Links(self.target, self.source, self.owner, self.graphs)
        other.__dict__["reversed"] = self
        return other

    @cached_property
    def balance(self) -> Tensor:
        """1 / √(D_u D_v) of each edge u → v (e), in float64; 0 where nothing leads to u."""
        scale = self.degree.double().rsqrt()
        scale[self.degree == 0] = 0
        return scale[self.source] * scale[self.target]

    def adjacency(self) -> Tensor:
        """A (n, n); parallel edges add up."""
        return torch.bincount(self.target * self.n + self.source, minlength=self.n**2).view(self.n, self.n)


@dataclass(frozen=True, eq=False)
class Rows:
    """Items grouped by a number in 0..n-1: those of group i are order[starts[i]], .., order[starts[i + 1] - 1]."""

    order: Tensor
    starts: Tensor

    @cached_property
    def counts(self) -> Tensor:
        """The items of each group (n)."""
        return self.starts.diff()


def group(by: Tensor, n: int) -> Rows:
    """Items by their number, stable."""
    if found := native.group(by, n):
        return Rows(*found)
    counts = torch.bincount(by, minlength=n)
    return Rows(torch.sort(by, stable=True).indices, torch.cat([counts.new_zeros(1), counts.cumsum(0)]))


@dataclass(frozen=True, eq=False)
class Graph:
    """Attributes on links; what there is none of has width 0."""

    links: Links
    nodes: Tensor
    """V (n, d)"""
    edges: Tensor
    """E (e, k)"""
    context: Tensor
    """U (g, u)"""

    def update(self, nodes: Tensor, edges: Tensor | None = None, context: Tensor | None = None) -> Graph:
        """The same links with new attributes."""
        return replace(
            self,
            nodes=nodes,
            edges=self.edges if edges is None else edges,
            context=self.context if context is None else context,
        )


def build_graph(
    nodes: Tensor,
    edges: Tensor,
    edge_attributes: Tensor | None = None,
    context: Tensor | None = None,
    owner: Tensor | None = None,
    graphs: int = 1,
) -> Graph:
    """Of node attributes (n, d) and edges (e, 2) as pairs (source, target); without `owner` all of it is one graph."""
    n, e = len(nodes), len(edges)
    owner = torch.zeros(n, dtype=torch.long, device=nodes.device) if owner is None else owner
    return Graph(
        Links(edges[:, 0], edges[:, 1], owner, graphs),
        nodes,
        nodes.new_zeros(e, 0) if edge_attributes is None else edge_attributes,
        nodes.new_zeros(graphs, 0) if context is None else context,
    )
