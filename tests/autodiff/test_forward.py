"""Dual numbers against torch.func.jvp and against the tape; the cost of both modes, counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.autodiff.forward import (
    dense_graph,
    directional,
    forward_cost,
    jacobian_forward,
    jacobian_reverse,
    most_alive,
    reverse_cost,
)
from descend.autodiff.graph import Graph
from descend.autodiff.primitives import MEAN, SOFTMAX, TANH, Primitive
from descend.autodiff.tape import Value
from tests.close import close

pytestmark = pytest.mark.system("forward-mode-autodiff")


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(x: Any, w: Any, v: Any) -> Any:
    return SOFTMAX(TANH(x @ w) @ v) * 2.0


@pytest.mark.system("forward-mode-autodiff", "full-jacobian")
def test_both_modes_and_torch_agree() -> None:
    inputs = [normal(3, seed=0), normal(3, 4, seed=1), normal(4, 2, seed=2)]
    reference = torch.func.jacrev(lambda x, w, v: 2 * ((x @ w).tanh() @ v).softmax(-1), (0, 1, 2))(*inputs)
    for a, b, c in zip(jacobian_forward(network, inputs), jacobian_reverse(network, inputs), reference, strict=True):
        close(a, b)
        close(a, c.flatten(1))


@pytest.mark.system("forward-mode-autodiff", "dual-numbers")
def test_one_pass_gives_a_directional_derivative() -> None:
    inputs = [normal(3, seed=0), normal(3, 4, seed=1), normal(4, 2, seed=2)]
    tangents = [normal(3, seed=5), normal(3, 4, seed=6), normal(4, 2, seed=7)]
    y, y_dot = directional(network, inputs, tangents)
    found = torch.func.jvp(lambda x, w, v: 2 * ((x @ w).tanh() @ v).softmax(-1), tuple(inputs), tuple(tangents))
    close(y, found[0])
    close(y_dot, found[1])


@pytest.mark.system("forward-mode-autodiff", "full-jacobian")
def test_two_passes_give_140_and_40() -> None:
    x = [torch.tensor(2.0, dtype=torch.float64), torch.tensor(3.0, dtype=torch.float64)]
    assert [j.item() for j in jacobian_forward(lambda a, b: ((a + b) * a) ** 2, x)] == [140, 40]


@pytest.mark.system("forward-mode-autodiff", "counted-cost")
def test_dense_layers_have_l_n_squared_edges() -> None:
    """MF 10.3.1 says O(L n); the units are L n, the edges L n²."""
    for layers, n in ((3, 4), (5, 7)):
        graph = dense_graph([normal(n, n, seed=i) for i in range(layers)])
        assert len(graph.nodes) == (layers + 1) * n
        assert len(graph.edges) == layers * n * n


def test_a_dense_graph_is_the_network() -> None:
    weights = [normal(3, 2, seed=0), normal(1, 3, seed=1)]
    x = normal(2, seed=2)
    graph = dense_graph(weights)
    tape = graph.evaluate({f"a0_{j}": Value(v, requires_grad=True) for j, v in enumerate(x)})
    tape["a2_0"].backward()
    leaf = x.clone().requires_grad_()
    y = (weights[1] @ (weights[0] @ leaf).tanh()).tanh()[0]
    y.backward()
    close(tape["a2_0"].data, y)
    close(torch.stack([tape[f"a0_{j}"].grad for j in range(2)]), leaf.grad)


@pytest.mark.system("forward-mode-autodiff", "counted-cost")
def test_memory_of_both_modes() -> None:
    """Widths 4, 8, 8, 2: reverse keeps the sum 22, not the largest width 8; forward keeps two layers, with tangents."""
    graph = dense_graph([normal(8, 4, seed=0), normal(8, 8, seed=1), normal(2, 8, seed=2)])
    assert reverse_cost(graph, 2).kept == 22
    assert most_alive(graph) == 16
    assert forward_cost(graph, 4).kept == 32
    deep = dense_graph([normal(3, 3, seed=i) for i in range(20)])
    assert reverse_cost(deep, 3).kept == 63
    assert most_alive(deep) == 6  # it does not grow with depth


@pytest.mark.system("forward-mode-autodiff", "counted-cost")
def test_the_passes_are_really_made() -> None:
    """Values and products that run, counted: n forward passes against one evaluation and m backward passes."""
    calls = {"value": 0, "vjp": 0, "jvp": 0}

    def counted(p: Primitive) -> Primitive:
        def wrap(kind: str, f: Any) -> Any:
            def call(*a: Any) -> Any:
                calls[kind] += 1
                return f(*a)

            return call

        return Primitive(p.name, wrap("value", p.value), wrap("vjp", p.vjp), wrap("jvp", p.jvp))

    tanh, mean = counted(TANH), counted(MEAN)
    inputs = [normal(13, seed=0)]
    jacobian_forward(lambda x: mean(tanh(x)), inputs)
    assert calls == {"value": 26, "vjp": 0, "jvp": 26}
    calls |= dict.fromkeys(calls, 0)
    jacobian_reverse(lambda x: mean(tanh(x)), inputs)
    assert calls == {"value": 2, "vjp": 2, "jvp": 0}
    graph = Graph()
    MEAN(TANH(graph.input("x")))
    assert forward_cost(graph, 13).passes == 13
    assert reverse_cost(graph, 1) == (1, 5, 3)


@pytest.mark.system("forward-mode-autodiff", "timed")
def test_reverse_mode_wins_by_the_number_of_parameters(record_property: Callable[[str, object], None]) -> None:
    """MF 10.3, timed: the gradient of an MLP's loss in both modes, on 44 and on 176 parameters; the best of 5 runs."""
    ratios = []
    for width in (4, 16):
        inputs = [normal(8, seed=0), normal(8, width, seed=1), normal(width, 3, seed=2)]
        took = {}
        for mode in (jacobian_forward, jacobian_reverse):
            times = []
            for _ in range(5):
                began = time.perf_counter()
                mode(lambda x, w, v: MEAN(TANH(x @ w) @ v), inputs)
                times.append(time.perf_counter() - began)
            took[mode] = min(times)
        ratios.append(took[jacobian_forward] / took[jacobian_reverse])
    record_property("forward over reverse", ratios)
    assert ratios[0] > 5
    assert ratios[1] > 2 * ratios[0]  # four times the parameters: four times the passes
