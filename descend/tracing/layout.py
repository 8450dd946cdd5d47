"""Where the nodes of a graph stand in the drawing: rows by depth, columns so that edges are short.

An edge that skips rows has a bend in each of them, which takes part in the layout: it leads around the nodes between.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from descend.tracing.program import Program

WIDE, HIGH = 150, 74  # from one node to the next
BEND = 0.25  # the room that a passing edge takes, where a node takes 1


class Position(NamedTuple):
    """The middle of a node, or a point of an edge."""

    x: float
    y: float


class GraphLayout(NamedTuple):
    """Every node's place, and the bends of the edges that skip rows."""

    nodes: list[Position]
    bends: dict[tuple[int, int], list[Position]]


def lay_out(program: Program) -> GraphLayout:
    """Every node below its parents; leaves one row above their first use; fewer crossings after a few sweeps."""
    depth = dict(enumerate(measure_depths(program)))
    count = len(program.nodes)
    chains: dict[tuple[int, int], list[int]] = {}
    near: dict[int, list[int]] = {node.index: [] for node in program.nodes}
    for edge in sorted({(parent, node.index) for node in program.nodes for parent in node.parents}):
        between = range(depth[edge[0]] + 1, depth[edge[1]])
        chains[edge] = [len(near) + i for i in range(len(between))]
        depth |= dict(zip(chains[edge], between, strict=True))
        near |= {i: [] for i in chains[edge]}
        line = [edge[0], *chains[edge], edge[1]]
        for a, b in pairwise(line):
            near[a].append(b)
            near[b].append(a)
    column = assign_columns(depth, near, count)
    left, top = min(column[i] for i in range(count)), min(depth.values())
    place = {i: Position((column[i] - left + 0.5) * WIDE, (depth[i] - top + 0.5) * HIGH) for i in near}
    shift = max(0.0, 10 - min(p.x for p in place.values()))
    place = {i: Position(p.x + shift, p.y) for i, p in place.items()}
    return GraphLayout([place[i] for i in range(count)], {edge: [place[i] for i in c] for edge, c in chains.items()})


def assign_columns(depth: dict[int, int], near: dict[int, list[int]], count: int) -> dict[int, float]:
    """Sweep down and up a few times: everything goes where its neighbours are, in that order, without overlap."""
    rows: dict[int, list[int]] = {}
    for i in near:
        rows.setdefault(depth[i], []).append(i)
    column = {i: float(k) - (len(row) - 1) / 2 for row in rows.values() for k, i in enumerate(row)}
    for sweep in range(8):
        for level in sorted(rows, reverse=sweep % 2 == 1):
            row = rows[level]
            wanted = {i: sum(column[j] for j in near[i]) / len(near[i]) if near[i] else column[i] for i in row}
            row.sort(key=lambda i: wanted[i])
            column |= spread_row(row, wanted, count)
    return column


def measure_depths(program: Program) -> list[int]:
    """Operations one below their deepest parent; a leaf just above the first operation that uses it."""
    depth = [0] * len(program.nodes)
    for node in program.operations:
        depth[node.index] = 1 + max((depth[p] for p in node.parents), default=0)
    first: dict[int, int] = {}
    for node in program.operations:
        for parent in node.parents:
            first[parent] = min(first.get(parent, depth[node.index]), depth[node.index])
    for leaf in program.leaves:
        depth[leaf.index] = first.get(leaf.index, 1) - 1
    return depth


def spread_row(row: list[int], wanted: dict[int, float], count: int) -> dict[int, float]:
    """The wanted columns, in order, far enough apart, and as a whole where they were wanted."""
    found: dict[int, float] = {}
    edge, before = float("-inf"), 0.0
    for i in row:
        room = 1.0 if i < count else BEND
        edge = max(wanted[i], edge + (before + room) / 2)
        found[i], before = edge, room
    shift = sum(wanted[i] - found[i] for i in row) / len(row)
    return {i: x + shift for i, x in found.items()}
