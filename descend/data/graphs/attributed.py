"""One graph in memory, and many of them laid end to end, as streams batch them.

    AttributedGraph    nodes (n, d), edges (e, 2) as pairs source, target, edge attributes (e, k), context (u)
    Graphs             the same of g graphs with owner vectors; `arrays` is what a stream takes

An undirected edge is two directed ones with equal attributes. Edges are in the order of target, then source, so that
what a node hears lies together.

Systems: graph-data-structure
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.batches import take_examples
from descend.errors import Mistake


@dataclass(frozen=True, eq=False)
class AttributedGraph:
    """Attributes of nodes, edges and of the whole; what there is none of has width 0."""

    nodes: Tensor
    edges: Tensor
    edge_attributes: Tensor
    context: Tensor
    directed: bool = False

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def pairs(self) -> Tensor:
        """Every edge once: of an undirected one the direction from the smaller number (m, 2)."""
        return self.edges if self.directed else self.edges[self.edges[:, 0] <= self.edges[:, 1]]

    @property
    def pair_attributes(self) -> Tensor:
        """The attributes of `pairs` (m, k)."""
        if self.directed:
            return self.edge_attributes
        return self.edge_attributes[self.edges[:, 0] <= self.edges[:, 1]]

    def batch(self) -> Batch:
        """A batch of this graph alone."""
        owner = torch.zeros(len(self.nodes), dtype=torch.long)
        edges_owner = torch.zeros(len(self.edges), dtype=torch.long)
        found = {
            "ids": torch.zeros(1, dtype=torch.long),
            "nodes": self.nodes,
            "nodes_owner": owner,
            "edges": self.edges,
            "edges_owner": edges_owner,
        }
        if self.edge_attributes.shape[1]:
            found |= {"edge_attributes": self.edge_attributes, "edge_attributes_owner": edges_owner}
        if len(self.context):
            found["context"] = self.context[None]
        return found


def link(
    nodes: Tensor,
    pairs: Tensor,
    directed: bool = False,
    edge_attributes: Tensor | None = None,
    context: Tensor | None = None,
) -> AttributedGraph:
    """A graph of node attributes (n, d) and pairs (m, 2); without `directed` every pair leads both ways, once."""
    n = len(nodes)
    attributes = nodes.new_zeros(len(pairs), 0) if edge_attributes is None else edge_attributes
    if not directed:
        once = find_first(pairs.amin(dim=1) * n + pairs.amax(dim=1))
        back = once[pairs[once, 0] != pairs[once, 1]]
        pairs = torch.cat([pairs[once], pairs[back].flip(1)])
        attributes = torch.cat([attributes[once], attributes[back]])
    kept = find_first(pairs[:, 1] * n + pairs[:, 0])
    context = nodes.new_zeros(0) if context is None else context
    return AttributedGraph(nodes, pairs[kept], attributes[kept], context, directed)


def find_first(keys: Tensor) -> Tensor:
    """Where each key (m) comes first, in the order of the keys."""
    ordered, order = torch.sort(keys, stable=True)
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return order[new]


@dataclass(frozen=True, eq=False)
class Graphs:
    """Many graphs end to end; y (g) or (g, t) says what each is or has."""

    arrays: Batch
    names: tuple[str, ...] = field(default=(), repr=False)
    """What each graph is called; nothing where they have no names."""

    def __len__(self) -> int:
        return len(self.arrays["ids"])

    @property
    def y(self) -> Tensor:
        return self.arrays["y"]

    @property
    def widths(self) -> tuple[int, int, int]:
        """Attributes of a node, of an edge, of a whole graph."""
        parts = ("nodes", "edge_attributes", "context")
        node, edge, context = (self.arrays[p].shape[1] if p in self.arrays else 0 for p in parts)
        return node, edge, context

    def take(self, rows: Tensor) -> Graphs:
        """The graphs of these rows."""
        return Graphs(take_examples(self.arrays, rows), tuple(self.names[i] for i in rows.tolist() if self.names))

    def one(self, i: int) -> AttributedGraph:
        """A graph by itself; as directed, since both directions of an undirected edge are there."""
        found = take_examples(self.arrays, torch.tensor([i]))
        nodes = found["nodes"]
        attributes = found.get("edge_attributes", nodes.new_zeros(len(found["edges"]), 0))
        context = found["context"][0] if "context" in found else nodes.new_zeros(0)
        return AttributedGraph(nodes, found["edges"], attributes, context, directed=True)

    def label(self, y: Tensor) -> Graphs:
        """With these labels or targets."""
        return replace(self, arrays={**self.arrays, "y": y})


def gather(graphs: Sequence[AttributedGraph], y: Tensor | None = None, names: Sequence[str] = ()) -> Graphs:
    """Graphs laid end to end; their attributes must have the same widths."""
    if not graphs:
        raise Mistake("the data is empty: there is no graph; check --data.path")
    sizes = torch.tensor([len(graph.nodes) for graph in graphs])
    edges = torch.tensor([len(graph.edges) for graph in graphs])
    number = torch.arange(len(graphs))
    arrays = {
        "ids": number,
        "nodes": torch.cat([graph.nodes for graph in graphs]),
        "nodes_owner": number.repeat_interleave(sizes),
        "edges": torch.cat([graph.edges for graph in graphs]),
        "edges_owner": number.repeat_interleave(edges),
    }
    if graphs[0].edge_attributes.shape[1]:
        arrays["edge_attributes"] = torch.cat([graph.edge_attributes for graph in graphs])
        arrays["edge_attributes_owner"] = arrays["edges_owner"]
    if len(graphs[0].context):
        arrays["context"] = torch.stack([graph.context for graph in graphs])
    return Graphs(arrays if y is None else {**arrays, "y": y}, tuple(names))
