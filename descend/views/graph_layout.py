"""Places for the nodes of a graph in the plane, and which nodes of a large one are shown.

    small      every node
    large      a sample that is linked: from a node on, each brings along a few of its neighbours, hop by hop

Places follow from springs along the edges and repulsion between all shown nodes (Fruchterman and Reingold).
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import torch
from torch import Tensor

from descend.seeds import generator

SHOWN = 320  # nodes of a picture
BRANCHES = 4  # neighbours that a node brings along
ROUNDS = 80  # of the springs
OPENED = 0.7


@dataclass(frozen=True, eq=False)
class Picture:
    """Which nodes are shown, where they are, and the edges among them."""

    rows: Tensor
    """Numbers of the shown nodes (s), in order."""
    at: Tensor
    """(s, 2)"""
    pairs: Tensor
    """Ends of the shown edges, numbered among the shown nodes, each edge once (m, 2)."""
    edges: Tensor
    """Which edges of the graph these are (m); of two directions the first."""


def lay_out(n: int, edges: Tensor, wanted: Tensor | None = None, most: int = SHOWN) -> Picture:
    """The whole graph of edges (e, 2), or a sample around the nodes `wanted`, in the plane."""
    rows = torch.arange(n) if n <= most else sample_nodes(n, edges, wanted, most)
    index = torch.full((n,), -1)
    index[rows] = torch.arange(len(rows))
    ends = index[edges]
    inside = ((ends >= 0).all(dim=1) & (ends[:, 0] != ends[:, 1])).nonzero().flatten()
    low, high = ends[inside].amin(dim=1), ends[inside].amax(dim=1)
    keys, first = find_first(low * len(rows) + high)
    pairs = torch.stack([keys // len(rows), keys % len(rows)], dim=1)
    return Picture(rows, place(len(rows), pairs), pairs, inside[first])


def find_first(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Each key once, and where it comes first."""
    ordered, order = torch.sort(keys, stable=True)
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new], order[new]


def place(n: int, pairs: Tensor) -> Tensor:
    """Springs, in the unit square; parts without a link between them stand side by side."""
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(pairs.tolist())
    found = torch.zeros(n, 2, dtype=torch.float64)
    parts = sorted(nx.connected_components(graph), key=len, reverse=True)
    for part, (left, bottom, side) in zip(parts, pack([len(part) for part in parts]), strict=True):
        members = sorted(part)
        if len(members) > 1:
            springs = nx.spring_layout(graph.subgraph(members), seed=0, iterations=ROUNDS)
            at = torch.tensor([springs[i].tolist() for i in members], dtype=torch.float64)
            at = open_middle(at)
        else:
            at = torch.full((1, 2), 0.5, dtype=torch.float64)
        found[members] = torch.tensor([left, bottom]) + side * (0.06 + 0.88 * at)
    return found


def open_middle(at: Tensor) -> Tensor:
    """Places (n, 2) in the unit square; distances r from the middle become r^`OPENED`, so that a dense core is seen."""
    at = at - at.mean(dim=0)
    r = at.norm(dim=1, keepdim=True).clamp_min(1e-9)
    at = at * r ** (OPENED - 1)
    return (at - at.amin(dim=0)) / (at.amax(dim=0) - at.amin(dim=0)).clamp_min(1e-9)


def pack(sizes: list[int]) -> list[tuple[float, float, float]]:
    """A square (left, bottom, side) for each part of so many nodes, the largest first: rows from the left."""
    sides = [size**0.5 for size in sizes]
    width = max(sides[0], sum(sizes) ** 0.5 * 1.15)
    squares, left, bottom, tall = [], 0.0, 0.0, 0.0
    for side in sides:
        if left + side > width * 1.001:
            left, bottom, tall = 0.0, bottom + tall, 0.0
        squares.append((left, bottom, side))
        left, tall = left + side, max(tall, side)
    whole = max(width, bottom + tall)
    return [(left / whole, bottom / whole, side / whole) for left, bottom, side in squares]


def sample_nodes(n: int, edges: Tensor, wanted: Tensor | None, most: int) -> Tensor:
    """Linked nodes, hop by hop from one of the wanted; where no more are linked, from another one on."""
    random = generator(0, n)
    starts = torch.arange(n) if wanted is None or not len(wanted) else wanted
    starts = starts[torch.randperm(len(starts), generator=random)]
    both = torch.cat([edges, edges.flip(1)])
    seen = torch.zeros(n, dtype=torch.bool)
    next_start = 0
    while int(seen.sum()) < most and next_start < len(starts):
        front = starts[next_start : next_start + 1]
        next_start += 1
        if seen[front]:
            continue
        seen[front] = True
        while len(front) and (room := most - int(seen.sum())) > 0:
            reached = torch.zeros(n, dtype=torch.bool)
            reached[front] = True
            out = both[reached[both[:, 0]] & ~seen[both[:, 1]]]
            out = out[torch.randperm(len(out), generator=random)]
            front = take_few(out)[:room]
            seen[front] = True
    return seen.nonzero().flatten()


def take_few(out: Tensor) -> Tensor:
    """Of edges (m, 2) in a random order: the ends, at most `BRANCHES` of each source, each once."""
    source, order = torch.sort(out[:, 0], stable=True)
    counts = torch.bincount(source, minlength=1)
    place_in_source = torch.arange(len(source)) - (counts.cumsum(0) - counts)[source]
    return out[order][place_in_source < BRANCHES][:, 1].unique()
