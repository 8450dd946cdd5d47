"""Edges that a network can use: what is wrong is named, and mended where there is one way to do it.

    an end beyond the nodes                     a mistake: file and line
    an edge from a node to itself               left out (layers that need it add it)
    the same edge twice                         the second is left out
    in one direction only, while others of an undirected file stand in both      taken in both
    in both directions with other attributes    those of the first count for both
    a node without any edge                     kept, told

Nothing of this changes the files.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.data.detection.annotated import Notes
from descend.data.graphs.attributed import AttributedGraph, find_first, link
from descend.data.graphs.links import is_among
from descend.errors import Mistake

Place = Callable[[int], str]
"""Where edge k is written: "edges.csv, line 7"."""


def clean_edges(pairs: Tensor, n: int, directed: bool, place: Place, notes: Notes) -> Tensor:
    """Rows of the pairs (m, 2) that are kept, in order. Notes gain the others."""
    outside = ((pairs < 0) | (pairs >= n)).any(dim=1)
    if bool(outside.any()):
        k = int(outside.nonzero()[0])
        end = next(i for i in pairs[k].tolist() if not 0 <= i < n)
        raise Mistake(f"{place(k)}: the edge ends at node {end}, but the nodes are 0 to {n - 1}; correct it")
    loops = pairs[:, 0] == pairs[:, 1]
    note(notes, "self-loops, left out", loops, place)
    keys = pairs[:, 0] * n + pairs[:, 1]
    first = torch.zeros(len(pairs), dtype=torch.bool)
    first[find_first(keys)] = True
    note(notes, "the same edge twice, left out", ~loops & ~first, place)
    kept = ~loops & first
    if not directed:
        ordered = keys[kept].sort().values
        both = is_among(pairs[:, 1] * n + pairs[:, 0], ordered)
        if bool(both[kept].any()):
            note(notes, "edges in one direction only, taken both ways", kept & ~both, place)
    return kept.nonzero().flatten()


def note(notes: Notes, kind: str, which: Tensor, place: Place) -> None:
    notes.add(kind, [place(k) for k in which.nonzero().flatten().tolist()])


def link_cleanly(
    nodes: Tensor,
    pairs: Tensor,
    directed: bool,
    place: Place,
    notes: Notes,
    edge_attributes: Tensor | None = None,
    context: Tensor | None = None,
) -> AttributedGraph:
    """The graph of the edges that are kept."""
    n = len(nodes)
    kept = clean_edges(pairs, n, directed, place, notes)
    if edge_attributes is None:
        return link(nodes, pairs[kept], directed, None, context)
    pairs, attributes = pairs[kept], edge_attributes[kept]
    if not directed:
        keys = pairs.amin(dim=1) * n + pairs.amax(dim=1)
        first = find_first(keys)
        one = first[torch.searchsorted(keys[first], keys)]
        other = (attributes != attributes[one]).any(dim=1)
        note(
            notes, "other attributes than the same edge turned round, which count", other, lambda k: place(int(kept[k]))
        )
    return link(nodes, pairs, directed, attributes, context)


def note_isolated(graph: AttributedGraph, names: tuple[str, ...], notes: Notes) -> None:
    """Nodes without any edge, by name."""
    alone = torch.ones(len(graph), dtype=torch.bool)
    alone[graph.edges.flatten()] = False
    notes.add("isolated nodes", [names[i] for i in alone.nonzero().flatten().tolist()])


def check_values(x: Tensor, place: Place, what: str) -> None:
    """Numbers (m, k) that are finite."""
    wrong = (~x.isfinite()).nonzero()
    if len(wrong):
        i, k = wrong[0].tolist()
        raise Mistake(f"{place(i)}: {what} {k} is {float(x[i, k])}, which is no finite number; correct or leave it out")
