"""Worked examples of graphs, of both modes and what they cost, and of the Hessian."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.autodiff.forward import Dual, dense_graph, forward_cost, jacobian_forward, reverse_cost
from descend.autodiff.graph import Graph
from descend.autodiff.hessian import condition_number, hessian
from descend.autodiff.paths import along, paths
from descend.autodiff.primitives import IDENTITY, chain_backward
from descend.autodiff.tape import Value
from descend.catalog.examples import Compute, Inputs, real


def loss(x1: Any, x2: Any) -> Any:
    """L = y², y = (x₁ + x₂) x₁"""
    return ((x1 + x2) * x1) ** 2


def book_graph() -> Graph:
    """v₁ = x₁, v₂ = x₂, v₃ = v₁ + v₂, v₄ = v₃ v₁, v₅ = y = v₄, and L = y²."""
    graph = Graph()
    v1, v2 = graph.input("v1"), graph.input("v2")
    v4 = (v1 + v2) * v1
    v5 = graph.add("v5", IDENTITY, v4.name)
    v5**2
    return graph


def values(i: Inputs) -> dict[str, Tensor]:
    return book_graph().evaluate({"v1": real(i["x1"]), "v2": real(i["x2"])})


def forward_pass(i: Inputs) -> Inputs:
    v = values(i)
    return {"v3": v["v3"], "v4": v["v4"], "y": v["v5"]}


def adjoints(i: Inputs) -> Inputs:
    graph = book_graph()
    tape = graph.evaluate({"v1": Value(i["x1"], requires_grad=True), "v2": Value(i["x2"], requires_grad=True)})
    tape["v6"].backward()
    found = values(i)
    by_first = {path[0][0]: along(graph, found, path, "v1")[0, 0] for path in paths(graph, "v1", "v6")}
    return {
        **{f"{name}_bar": tape[name].grad for name in ("v5", "v4", "v3")},
        "v1_from_v4": by_first["v4"],
        "v1_from_v3": by_first["v3"],
        "dL_dx1": tape["v1"].grad,
        "dL_dx2": tape["v2"].grad,
    }


def hand_check(i: Inputs) -> Inputs:
    x = real(i["x1"]), real(i["x2"])
    one_pass = loss(Dual(x[0], real(1.0)), Dual(x[1]))
    return {"dL_dx1": one_pass.tangent, "forward_mode_xdot1_and_xdot2": [j[0, 0] for j in jacobian_forward(loss, x)]}


def two_steps(i: Inputs) -> Inputs:
    layer, x = real(i["layer"]), Value(real(i["x"]), requires_grad=True)
    h = Value(layer) @ x
    squares = h**2
    total = squares @ Value(torch.ones_like(squares.data))
    total.backward()
    assert h.grad is not None
    return {
        "h": h.data,
        "L": total.data,
        "grad_h": h.grad,
        "grad_x": chain_backward([layer], h.grad)[0],
        "direct": x.grad,
    }


def random_dense(widths: list[int]) -> Graph:
    pairs = zip(widths[1:], widths[:-1], strict=True)
    return dense_graph([torch.ones(out, n, dtype=torch.float64) for out, n in pairs])


def dense_cost(i: Inputs) -> Inputs:
    graph = random_dense([i["n"]] * (i["L"] + 1))
    return {"L_times_n": len(graph.nodes) - i["n"], "edges_dense": len(graph.edges)}


def direction(i: Inputs) -> Inputs:
    graph = random_dense([i["inputs_n"], i["outputs_m"]])
    return {
        "reverse_passes": reverse_cost(graph, i["outputs_m"]).passes,
        "forward_passes": forward_cost(graph, i["inputs_n"]).passes,
    }


def memory(i: Inputs) -> Inputs:
    graph = random_dense(i["layer_widths"])
    return {"max_width": max(i["layer_widths"]), "stored_activations": reverse_cost(graph, 1).kept}


def off_diagonal(i: Inputs) -> Inputs:
    curvature = real(i["H"])
    h = hessian(lambda x: x @ curvature @ x / 2, real([1.0, 1.0]))
    return {"offdiagonal": h[0, 1], "condition_number": condition_number(h)}


EXAMPLES: dict[str, Compute] = {
    "MF-10.2.2-forward": forward_pass,
    "MF-10.2.2-adjoints": adjoints,
    "MF-10.2.2-hand-check": hand_check,
    "VOM-2.5.8-backprop": two_steps,
    "MF-10.3.1-cost": dense_cost,
    "MF-10.3.2-direction": direction,
    "MF-10.3.3-memory": memory,
    "DLN-Hessian-offdiagonal": off_diagonal,
}

SET_ASIDE: dict[str, str] = {}
