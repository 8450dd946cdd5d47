"""Graphs: order, evaluation, cycles, granularity, unrolling; and the chain rule as a sum over paths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from descend.autodiff.forward import Dual
from descend.autodiff.graph import Graph, unroll
from descend.autodiff.paths import along, count, path_sum, paths
from descend.autodiff.primitives import ADD, MATMUL, MUL, SIGMOID, SIN, TANH, Primitive
from descend.autodiff.tape import Value
from descend.errors import Mistake
from tests.close import close

GRAPH, PATHS = pytest.mark.system("computational-graph"), pytest.mark.system("path-sum-chain-rule")


def t(value: object) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def book() -> Graph:
    graph = Graph()
    x1, x2 = graph.input("x1"), graph.input("x2")
    (x1 + x2) * x1
    return graph


@pytest.mark.system("computational-graph", "printed")
@GRAPH
def test_the_example_of_mf() -> None:
    graph = book()
    assert graph.edges == [("x1", "v3"), ("x2", "v3"), ("v3", "v4"), ("x1", "v4")]
    assert graph.evaluate({"x1": t(2.0), "x2": t(3.0)})["v4"].item() == 10
    assert str(graph) == "x1: input\nx2: input\nv3 = add(x1, x2)\nv4 = mul(v3, x1)"


@pytest.mark.system("computational-graph", "cycles")
@GRAPH
def test_cycles_and_missing_pieces_are_refused() -> None:
    graph = book()
    graph.add("h", ADD, "x1", "g")
    with pytest.raises(Mistake, match="'g', which is not in the graph"):
        graph.order()
    graph.add("g", TANH, "h")
    with pytest.raises(Mistake, match="cycle among h, g; unroll"):
        graph.order()
    with pytest.raises(Mistake, match="already has a node 'g'"):
        graph.add("g", TANH, "x1")
    with pytest.raises(Mistake, match="value for its input 'x2'"):
        book().evaluate({"x1": t(1.0)})


def unit() -> Primitive:
    """Logistic regression σ(w·x + b) as one node."""

    def slope(y: Tensor) -> Tensor:
        return y * (1 - y)

    return Primitive(
        "logistic",
        lambda w, x, b: (w @ x + b).sigmoid(),
        lambda g, y, w, x, b: (g * slope(y) * x, g * slope(y) * w, g * slope(y)),
        lambda d, y, w, x, b: slope(y) * (d[0] @ x + w @ d[1] + d[2]),
    )


@pytest.mark.system("computational-graph", "granularity")
@GRAPH
def test_fine_and_coarse_graphs_agree() -> None:
    fine, coarse = Graph(), Graph()
    w, x, b = (fine.input(name) for name in "wxb")
    y = SIGMOID(w @ x + b)
    for name in "wxb":
        coarse.input(name)
    coarse.add("y", unit(), "w", "x", "b")
    inputs = {"w": t([0.5, -1.0]), "x": t([2.0, 0.3]), "b": t(0.1)}
    results = []
    for graph, out in ((fine, y.name), (coarse, "y")):
        tape = graph.evaluate({k: Value(v, requires_grad=True) for k, v in inputs.items()})
        tape[out].backward()
        dual = graph.evaluate({k: Dual(v, torch.ones_like(v)) for k, v in inputs.items()})
        results.append([tape[out].data, *(tape[k].grad for k in inputs), dual[out].tangent])
    assert len(fine.nodes) == 6
    assert len(coarse.nodes) == 4
    for a, c in zip(*results, strict=True):
        close(a, c)


@pytest.mark.system("computational-graph", "unrolled-loop")
@GRAPH
def test_an_unrolled_loop_is_the_explicit_product() -> None:
    """h_t = tanh(W h_{t-1} + x_t) for T steps; the gradient of the shared W sums over the steps."""
    body = Graph()
    h, w, x = (body.input(name) for name in ("h", "w", "x"))
    nxt = TANH(MATMUL(w, h) + x)
    whole = unroll(body, {"h": nxt.name}, {"x"}, 3)
    assert [n for n in whole.nodes if whole.nodes[n].op is None] == ["h@0", "w", "x@1", "x@2", "x@3"]
    weight, start, xs = t([[0.5, -0.3], [0.2, 0.8]]), t([0.1, -0.2]), t([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    inputs = {"h@0": start, "w": weight, **{f"x@{i + 1}": v for i, v in enumerate(xs)}}
    tape = whole.evaluate({k: Value(v, requires_grad=True) for k, v in inputs.items()})
    tape["h@3"].backward(torch.ones(2, dtype=torch.float64))
    leaf, state = weight.clone().requires_grad_(), start.clone().requires_grad_()
    out = state
    for v in xs:
        out = (leaf @ out + v).tanh()
    out.sum().backward()
    close(tape["h@3"].data, out)
    close(tape["w"].grad, leaf.grad)
    close(tape["h@0"].grad, state.grad)


def random_graph(program: list[tuple[int, int, int]]) -> tuple[Graph, str]:
    graph = Graph()
    nodes: list[Any] = [graph.input("x"), graph.input("y")]
    for kind, i, j in program:
        a, b = nodes[i % len(nodes)], nodes[j % len(nodes)]
        nodes.append((a + b, a * b, SIN(a))[kind])
    return graph, nodes[-1].name


PROGRAMS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=7)


@pytest.mark.system("path-sum-chain-rule", "enumeration")
@pytest.mark.system("computational-graph", "cycles", "any-dag")
@GRAPH
@PATHS
@settings(max_examples=25, deadline=None, derandomize=True)
@given(PROGRAMS)
def test_random_graphs(program: list[tuple[int, int, int]]) -> None:
    """Order is valid, evaluation is direct evaluation, and the sum over paths is what reverse mode finds."""
    graph, last = random_graph(program)
    order = graph.order()
    assert all(order.index(a) < order.index(b) for a, b in graph.edges)
    values = graph.evaluate({"x": t(0.7), "y": t(-0.4)})
    direct = [t(0.7), t(-0.4)]
    for kind, i, j in program:
        a, b = direct[i % len(direct)], direct[j % len(direct)]
        direct.append((a + b, a * b, a.sin())[kind])
    assert values[last].item() == direct[-1].item()
    tape = graph.evaluate({"x": Value(0.7, requires_grad=True), "y": Value(-0.4, requires_grad=True)})
    tape[last].backward()
    for name in ("x", "y"):
        grad = tape[name].grad
        expected = torch.zeros(()).double() if grad is None else grad
        torch.testing.assert_close(path_sum(graph, values, name, last)[0, 0], expected, rtol=1e-9, atol=1e-12)
        assert count(graph, name, last) == len(list(paths(graph, name, last)))


@pytest.mark.system("path-sum-chain-rule", "split")
@PATHS
def test_the_two_paths_of_mf_and_the_six_of_vom() -> None:
    """L = y²: 140 = 100 (direct) + 40 (through v₃). VOM 2.5.6: 2 · 3 = 6 along one path."""
    graph = book()
    graph.add("L", MUL, "v4", "v4")
    values = graph.evaluate({"x1": t(2.0), "x2": t(3.0)})
    shares: dict[str, float] = {}
    for path in paths(graph, "x1", "L"):
        shares[path[0][0]] = shares.get(path[0][0], 0.0) + along(graph, values, path, "x1").item()
    assert shares == {"v3": 40.0, "v4": 100.0}
    chain = Graph()
    x = chain.input("x")
    y = (x * 2) * 3
    values = chain.evaluate({"x": t(1.0)} | {k: t(v) for k, v in chain.constants.items()})
    values = {k: v if isinstance(v, Tensor) else t(v) for k, v in values.items()}
    assert path_sum(chain, values, "x", y.name).item() == 6


@pytest.mark.system("path-sum-chain-rule", "enumeration")
@PATHS
def test_paths_through_tensors_multiply_jacobians() -> None:
    graph = Graph()
    w, x = graph.input("w"), graph.input("x")
    out = TANH(w @ x) * (w @ x)
    inputs = {"w": t([[1.0, 2.0], [0.5, -1.0]]), "x": t([0.3, 0.7])}
    values = graph.evaluate(inputs)
    j = torch.autograd.functional.jacobian(lambda v: (inputs["w"] @ v).tanh() * (inputs["w"] @ v), inputs["x"])
    close(path_sum(graph, values, "x", out.name), j)


@pytest.mark.system("path-sum-chain-rule", "exponential")
@PATHS
def test_the_number_of_paths_can_be_exponential() -> None:
    graph = Graph()
    v = graph.input("x")
    for _ in range(60):
        v = v + v
    assert count(graph, "x", v.name) == 2**60
