"""Computational graph: a directed acyclic graph of operations, built from expressions, ordered and evaluated.

    leaves are inputs and parameters; an edge v_i → v_j says that v_j is computed from v_i
    topological order: every node after its parents; it exists if and only if there is no cycle
    forward: v_j = op_j(v_parents)

A node may be a single operation (add, mul, sigmoid) or a whole unit (logistic regression as one primitive): value and
gradients agree. `evaluate` takes tensors, values of the tape or dual numbers, so one graph serves all modes. A loop is
not a graph: it is unrolled for T steps first (`unroll`), with the parameters shared by all steps.

Systems: computational-graph
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from descend.autodiff.primitives import IDENTITY, Primitive, Traced
from descend.errors import Mistake


class Node(NamedTuple):
    """An operation on other nodes; an input has none."""

    op: Primitive | None
    parents: tuple[str, ...]


class Symbol(Traced):
    """The name of a node; an operation on it adds a node to its graph."""

    def __init__(self, graph: Graph, name: str):
        self.graph, self.name = graph, name

    def apply(self, primitive: Primitive, inputs: tuple[Any, ...]) -> Symbol:
        parents = [x.name if isinstance(x, Symbol) else self.graph.constant(x) for x in inputs]
        return self.graph.add(f"v{len(self.graph.nodes) + 1}", primitive, *parents)


class Graph:
    """Nodes by name. `add` accepts parents that come later; `order` refuses what then has a cycle."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.constants: dict[str, Any] = {}

    def input(self, name: str) -> Symbol:
        return self.add(name, None)

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants) + 1}"
        self.constants[name] = value
        return self.add(name, None).name

    def add(self, name: str, op: Primitive | None, *parents: str) -> Symbol:
        if name in self.nodes:
            raise Mistake(f"the graph already has a node {name!r}; choose another name")
        self.nodes[name] = Node(op, parents)
        return Symbol(self, name)

    @property
    def edges(self) -> list[tuple[str, str]]:
        return [(parent, name) for name, node in self.nodes.items() for parent in node.parents]

    def order(self) -> list[str]:
        """The nodes, each after its parents, and otherwise as they were added."""
        for parent, name in self.edges:
            if parent not in self.nodes:
                raise Mistake(f"node {name!r} is computed from {parent!r}, which is not in the graph")
        waiting = {name: len(node.parents) for name, node in self.nodes.items()}
        children: dict[str, list[str]] = {name: [] for name in self.nodes}
        for parent, name in self.edges:
            children[parent].append(name)
        ready = deque(name for name, count in waiting.items() if count == 0)
        done = []
        while ready:
            name = ready.popleft()
            done.append(name)
            for child in children[name]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    ready.append(child)
        if len(done) < len(self.nodes):
            loop = ", ".join(name for name in self.nodes if name not in set(done))
            raise Mistake(f"the graph has a cycle among {loop}; unroll it for a number of steps")
        return done

    def evaluate(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The value of every node; the inputs may be tensors, values of the tape or dual numbers."""
        values: dict[str, Any] = {}
        for name in self.order():
            op, parents = self.nodes[name]
            if op is not None:
                values[name] = op(*(values[parent] for parent in parents))
            elif name in self.constants:
                values[name] = self.constants[name]
            elif name in inputs:
                values[name] = inputs[name]
            else:
                raise Mistake(f"the graph needs a value for its input {name!r}")
        return values

    def __str__(self) -> str:
        def line(name: str) -> str:
            op, parents = self.nodes[name]
            known = f" = {self.constants[name]}" if name in self.constants else ": input"
            return f"{name} = {op.name}({', '.join(parents)})" if op else name + known

        return "\n".join(map(line, self.order()))


def unroll(body: Graph, carry: Mapping[str, str], each: set[str], steps: int) -> Graph:
    """T copies of the body in a row: h@0 → h@1 → ... → h@T.

    `carry` maps an input of the body to the node that becomes its value in the next step. Inputs in `each` are another
    one every step (x@1 .. x@T); all other inputs are parameters, shared by all steps, and their gradients add up.
    """
    whole = Graph()
    for name in carry:
        whole.input(f"{name}@0")
    for t in range(1, steps + 1):
        place = {name: f"{name}@{t - 1}" for name in carry}
        for name in body.order():
            op, parents = body.nodes[name]
            if name in carry:
                continue
            place[name] = name if op is None and name not in each else f"{name}@{t}"
            if place[name] not in whole.nodes:
                whole.add(place[name], op, *(place[parent] for parent in parents))
            if name in body.constants:
                whole.constants[name] = body.constants[name]
        for name, result in carry.items():
            whole.add(f"{name}@{t}", IDENTITY, place[result])
    return whole
