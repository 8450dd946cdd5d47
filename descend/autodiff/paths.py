"""The chain rule as a sum over paths: multiply along every path, add the paths up.

    ∂L/∂v_i = Σ_{paths i → .. → L} Π_{edges (j → k) of the path} ∂v_k/∂v_j

It equals the adjoint recursion, which reuses what paths share: the number of paths can grow exponentially with depth
(`count` finds it without walking them), the recursion visits every edge once.

Systems: path-sum-chain-rule
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from descend.autodiff.graph import Graph

Edge = tuple[str, int]
"""A node, and which of its parents the path comes from: x·x has two edges from x."""


def edges_from(graph: Graph) -> dict[str, list[Edge]]:
    """The edges that leave each node."""
    found: dict[str, list[Edge]] = {name: [] for name in graph.nodes}
    for name, node in graph.nodes.items():
        for place, parent in enumerate(node.parents):
            found[parent].append((name, place))
    return found


def paths(graph: Graph, start: str, end: str) -> Iterator[list[Edge]]:
    """Every path, as the list of its edges."""
    graph.order()  # a cycle would have no end
    leaving = edges_from(graph)

    def walk(name: str, so_far: list[Edge]) -> Iterator[list[Edge]]:
        if name == end:
            yield so_far
        for edge in leaving[name]:
            yield from walk(edge[0], [*so_far, edge])

    yield from walk(start, [])


def count(graph: Graph, start: str, end: str) -> int:
    """The number of paths, from one sweep over the edges."""
    ways = dict.fromkeys(graph.nodes, 0)
    ways[start] = 1
    for name in graph.order():
        ways[name] += sum(ways[parent] for parent in graph.nodes[name].parents)
    return ways[end]


def edge_jacobian(graph: Graph, values: Mapping[str, Tensor], edge: Edge) -> Tensor:
    """∂v_k/∂v_j as a matrix (size of v_k, size of v_j); one column for each unit tangent of v_j."""
    name, place = edge
    op, parents = graph.nodes[name]
    assert op is not None
    inputs = [values[parent] for parent in parents]
    x = inputs[place]
    columns = []
    for unit in torch.eye(x.numel(), dtype=x.dtype):
        tangents = [torch.zeros_like(other) for other in inputs]
        tangents[place] = unit.view_as(x)
        columns.append(op.jvp(tangents, values[name], *inputs).flatten())
    return torch.stack(columns, dim=1)


def along(graph: Graph, values: Mapping[str, Tensor], path: list[Edge], start: str) -> Tensor:
    """The product of the edges' Jacobians: the share of one path in ∂v_end/∂v_start."""
    product = torch.eye(values[start].numel(), dtype=values[start].dtype)
    for edge in path:
        product = edge_jacobian(graph, values, edge) @ product
    return product


def path_sum(graph: Graph, values: Mapping[str, Tensor], start: str, end: str) -> Tensor:
    """∂v_end/∂v_start (size of end, size of start), path by path."""
    zero = torch.zeros(values[end].numel(), values[start].numel(), dtype=values[start].dtype)
    return sum((along(graph, values, path, start) for path in paths(graph, start, end)), zero)
