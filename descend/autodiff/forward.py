"""Forward-mode automatic differentiation with dual numbers, and what both modes cost.

    v + v̇ ε,  ε² = 0          v̇_j = Σ_{parents k} (∂v_j/∂v_k) v̇_k          seed: ẋ_i = 1, the other inputs 0

                        one pass        n inputs, m outputs      kept
    forward mode        O(|V| + |E|)    n passes                 the values still in use, each with its tangent
    reverse mode        O(|V| + |E|)    m passes                 every value, until the backward pass has used it

So a loss (m = 1) with many parameters asks for reverse mode. Errata of MF 10.3: L dense layers of n units have L n²
edges, so a pass is O(L n²), not O(L n); 10.3.2 swaps inputs and outputs (its own table is right); the memory of reverse
mode is the sum of the widths, not the largest width: `checkpointing` is what brings it down.

Systems: forward-mode-autodiff
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.autodiff.graph import Graph
from descend.autodiff.primitives import Primitive, Traced, tensor
from descend.autodiff.tape import Value


class Dual(Traced):
    """A value with its tangent."""

    def __init__(self, value: Any, tangent: Any = None):
        self.value = tensor(value)
        self.tangent = torch.zeros_like(self.value) if tangent is None else tensor(tangent, self.value)

    def __repr__(self) -> str:
        return f"Dual({self.value.tolist()}, {self.tangent.tolist()})"

    def apply(self, primitive: Primitive, inputs: tuple[Any, ...]) -> Dual:
        duals = [x if isinstance(x, Dual) else Dual(tensor(x, self.value)) for x in inputs]
        values = [d.value for d in duals]
        y = primitive.value(*values)
        return Dual(y, primitive.jvp([d.tangent for d in duals], y, *values))


def directional(f: Callable[..., Any], inputs: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """f and its derivative along the tangents, in one pass."""
    y = f(*(Dual(x, t) for x, t in zip(inputs, tangents, strict=True)))
    return y.value, y.tangent


def jacobian_forward(f: Callable[..., Any], inputs: Sequence[Tensor]) -> list[Tensor]:
    """∂f/∂x of every input, (size of f, size of x): one pass for each number of the inputs."""
    found = []
    for i, x in enumerate(inputs):
        columns = []
        for unit in torch.eye(x.numel(), dtype=x.dtype):
            tangents = [torch.zeros_like(other) for other in inputs]
            tangents[i] = unit.view_as(x)
            columns.append(directional(f, inputs, tangents)[1].flatten())
        found.append(torch.stack(columns, dim=1))
    return found


def jacobian_reverse(f: Callable[..., Any], inputs: Sequence[Tensor]) -> list[Tensor]:
    """The same by the tape: one backward pass for each number of the output."""
    values = [Value(x, requires_grad=True) for x in inputs]
    y = f(*values)
    rows: list[list[Tensor]] = []
    for unit in torch.eye(y.data.numel(), dtype=y.data.dtype):
        for v in values:
            v.grad = torch.zeros_like(v.data)
        y.backward(unit.view_as(y.data))
        rows.append([v.grad.flatten() for v in values if v.grad is not None])
    return [torch.stack(column) for column in zip(*rows, strict=True)]


class Cost(NamedTuple):
    """Of a whole Jacobian: passes, visits of nodes and edges in all of them, and the most numbers kept at once."""

    passes: int
    visits: int
    kept: int


def reverse_cost(graph: Graph, outputs: int) -> Cost:
    """m passes; every value is kept."""
    nodes, edges = len(graph.nodes), len(graph.edges)
    return Cost(outputs, outputs * (nodes + edges), nodes)


def forward_cost(graph: Graph, inputs: int) -> Cost:
    """n passes; a value and its tangent are dropped after their last use."""
    nodes, edges = len(graph.nodes), len(graph.edges)
    return Cost(inputs, inputs * (nodes + edges), 2 * most_alive(graph))


def most_alive(graph: Graph) -> int:
    """The most values in use at once, when each is dropped after its last use; results without a use are kept."""
    order = graph.order()
    last = {parent: i for i, name in enumerate(order) for parent in graph.nodes[name].parents}
    alive, most = 0, 0
    for i, name in enumerate(order):
        alive += 1
        most = max(most, alive)
        alive -= sum(last.get(parent) == i for parent in set(graph.nodes[name].parents))
    return most


def dense_graph(weights: Sequence[Tensor]) -> Graph:
    """One node for each unit of a dense network, tanh of a weighted sum of all units of the layer below."""
    graph = Graph()
    below = [graph.input(f"a0_{j}").name for j in range(weights[0].shape[1])]
    for layer, w in enumerate(weights, start=1):
        below = [graph.add(f"a{layer}_{i}", neuron(row), *below).name for i, row in enumerate(w)]
    return graph


def neuron(row: Tensor) -> Primitive:
    """tanh(Σ_j w_j a_j) of scalars as one primitive."""
    return Primitive(
        "neuron",
        lambda *a: (row * torch.stack(a)).sum().tanh(),
        lambda g, y, *a: tuple(g * (1 - y.square()) * row),
        lambda t, y, *a: (1 - y.square()) * (row * torch.stack(tuple(t))).sum(),
    )
