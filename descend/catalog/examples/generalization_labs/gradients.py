"""Worked examples of gradients: products in depth, the error surface, the descent inequality, minimum norm."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.activations import sigmoid
from descend.optim.trajectory import quadratic
from descend.theory.generalization.depth_gradient import (
    SIGMOID_SLOPE,
    chain,
    delta_as_printed,
    first_delta,
    sigmoid_bound,
)
from descend.theory.generalization.descent import descent_bound
from descend.theory.generalization.error_surface import angle
from descend.theory.generalization.minimum_norm import descend_to, minimum_norm


def steepest_sigmoid() -> tuple[float, float]:
    """max σ' and where it is, on a grid."""
    z = torch.linspace(-8, 8, 1601, dtype=torch.float64)
    slope = sigmoid(z) * (1 - sigmoid(z))
    return float(slope.max()), float(z[slope.argmax()])


def steepest(i: Inputs) -> Inputs:
    most, at = steepest_sigmoid()
    return {"max": most, "argmax": at, "bound_after_10_layers_unit_weights": sigmoid_bound(10)}


def exploding(i: Inputs) -> Inputs:
    factor = i["weight"] * i["sigma_prime_at_0"]
    return {"factor_per_layer": factor, "factor_10_layers": chain(factor, i["layers"])}


def quarter(i: Inputs) -> Inputs:
    return {"max_sigma_prime": SIGMOID_SLOPE, "upper_bound_product": [sigmoid_bound(n) for n in i["L"]]}


def product(i: Inputs) -> Inputs:
    weights, x = [real(w) for w in i["W"]], real(i["x"])
    zs, a = [], x
    for w in weights:
        zs.append((w @ a).requires_grad_())
        a = sigmoid(zs[-1])
    loss = -(i["y"] * a.log() + (1 - i["y"]) * (1 - a).log()).sum()
    deltas = torch.autograd.grad(loss, zs)
    slopes = [(sigmoid(z) * (1 - sigmoid(z))).detach() for z in zs]
    return {
        "delta1_autograd": deltas[0],
        "printed_product": delta_as_printed(weights[1:], slopes[1:], deltas[-1]),
        "right_product": first_delta(weights[1:], slopes[:-1], deltas[-1]),
    }


def powers(i: Inputs) -> Inputs:
    return {f"{f:g}^{n}": chain(f, n) for f in i["f"] for n in i["L"]}


def surface_angle(i: Inputs) -> Inputs:
    theta = real(i["theta"])
    return {
        "angle_degrees": angle(real(i["H"]), theta),
        "angle_for_circle": angle(torch.eye(2, dtype=torch.float64), theta),
    }


def descent(i: Inputs) -> Inputs:
    theta = real(i["theta"])
    f = quadratic(i["L"] * torch.eye(len(theta), dtype=torch.float64))
    g = i["L"] * theta
    return {
        "f0": f(theta),
        "f_after": [f(theta - eta * g) for eta in i["eta"]],
        "right_hand_side": [descent_bound(f(theta), g, g, eta, i["L"]) for eta in i["eta"]],
    }


def smallest_norm(i: Inputs) -> Inputs:
    a, y = real(i["A"]), real(i["y"])
    return {"gd_limit": descend_to(a, y, real(i["theta0"]), i["eta"], 2000), "min_norm": minimum_norm(a, y)}


EXAMPLES: dict[str, Compute] = {
    "DLN-Sigmoid-max-derivative": steepest,
    "DLN-Sigmoid-exploding": exploding,
    "MF-3.3.6-sigmoid-quarter": quarter,
    "MF-5.5-eq5.32": product,
    "VOM-9.9.1-vanishing": powers,
    "DLN-ErrorSurface-angle": surface_angle,
    "MF-8.1.4-descent": descent,
    "MF-9.4.4-min-norm": smallest_norm,
}
SET_ASIDE: dict[str, str] = {}
