"""Worked examples of the delta recursion: 2-3-1 network, two-layer ReLU network, batches and layouts."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.backward.mlp import (
    Gradients,
    Step,
    backward_columns,
    denominator_jacobian,
    forward_columns,
    numerator_jacobian,
    output_delta,
    two_layer_gradients,
)


def jacobian_layout(i: Inputs) -> Inputs:
    w, x = real(i["W"]), torch.ones(i["d_f"], dtype=torch.float64)
    numerator, denominator = numerator_jacobian(lambda z: w @ z, x), denominator_jacobian(lambda z: w @ z, x)
    return {
        "shape_of_printed_index_formula": numerator.shape,
        "shape_needed": denominator.shape,
        "denominator_layout_matrix": denominator,
        "element_ij": "d(z_g)_j / d(z_f)_i" if torch.equal(denominator, numerator.T) else "neither",
    }


def mean_bce(w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, x: Tensor, y: Tensor) -> Tensor:
    y_hat = forward_columns(x, [w1, w2], [b1, b2], ["relu", "sigmoid"])[0]
    return torch.nn.functional.binary_cross_entropy(y_hat, y)


def double_average(i: Inputs) -> Inputs:
    w1, b1, w2, x, y = (real(i[name]) for name in ("W1", "b1", "W2", "X", "Y"))
    b2, m = real([i["b2"]]), y.shape[1]
    y_hat, steps = forward_columns(x, [w1, w2], [b1, b2], ["relu", "sigmoid"])
    per_example = y_hat - y
    w2.requires_grad_()
    slope = torch.autograd.grad(mean_bce(w1, b1, w2, b2, x, y), w2)[0]
    w = [w1, w2.detach()]
    return {
        "autograd": slope[0],
        "eq_5.23_with_5.20": backward_columns(steps, w, per_example).weights[1][0],
        "eq_5.17_with_5.20_literal": backward_columns(steps, w, per_example / m).weights[1][0],
    }


def two_layer(i: Inputs) -> Inputs:
    x, y, w1, b1, w2, b2 = (real(i[name]) for name in ("x", "y", "W1", "b1", "w2", "b2"))
    found = two_layer_gradients(x, y, w1, b1, w2, b2)
    leaves = [w.clone().requires_grad_() for w in (w1, b1, w2, b2)]
    a1, b, a2, c = leaves
    slopes = torch.autograd.grad((a2 @ (a1 @ x + b).relu() + c - y).square() / 2, leaves)
    ours = (found.w1, found.delta, found.w2, found.delta_out)
    return {
        "a": found.a,
        "h": found.h,
        "yhat": found.y_hat,
        "loss": found.loss,
        "delta_out": found.delta_out,
        "grad_w2": found.w2,
        "delta": found.delta,
        "grad_W1": found.w1,
        "grad_b1": found.delta,
        "grad_b2": found.delta_out,
        "max_abs_diff_to_autograd": max(float((a - b).abs().max()) for a, b in zip(ours, slopes, strict=True)),
    }


def recursion(i: Inputs) -> Inputs:
    weights, biases = [real(w) for w in i["W"]], [real(b) for b in i["b"]]
    x, target = real(i["x"])[:, None], real(i["target"])[:, None]
    a, steps = forward_columns(x, weights, biases, ["tanh"] * 3)
    found = backward_columns(steps, weights, output_delta(steps[-1], a - target))
    return {
        "loss": (a - target).square().sum() / 2,
        "grad_W1": found.weights[0],
        "grad_W3": found.weights[2],
        "grad_x": found.x[:, 0],
    }


W1 = [[0.2, 0.4], [-0.5, 0.3], [0.1, -0.2]]
B1, W2, B2, X, Y = [0.1, -0.1, 0.2], [[0.6, -0.4, 0.5]], [-0.2], [1.0, 0.5], 1.0  # VOM 5.2: the 2-3-1 network


def network(w1: Tensor, b1: Tensor) -> tuple[Tensor, list[Step]]:
    return forward_columns(real(X)[:, None], [w1, real(W2)], [b1, real(B2)], ["relu", "sigmoid"])


def of_network(w1: Tensor, b1: Tensor) -> Gradients:
    y_hat, steps = network(w1, b1)
    return backward_columns(steps, [w1, real(W2)], output_delta(steps[-1], y_hat - Y))


def half_square(w1: Tensor, b1: Tensor) -> Tensor:
    return (network(w1, b1)[0] - Y).square().sum() / 2


def delta2(i: Inputs) -> Inputs:
    z = (real(i["yhat"]) / (1 - real(i["yhat"]))).log()
    step = Step(z, z, "sigmoid")
    return {
        "sigma_prime": output_delta(step, torch.ones_like(z)),
        "delta2": output_delta(step, real(i["yhat"]) - i["y"]),
    }


def sign_slip(i: Inputs) -> Inputs:
    return {"first_version": delta2(i)["delta2"]}


def output_gradients(i: Inputs) -> Inputs:
    step = Step(real(i["h1"])[:, None], real([[0.0]]), "sigmoid")
    found = backward_columns([step], [real(W2)], real([[i["delta2"]]]))
    return {"dW2": found.weights[0][0], "db2": found.biases[0][0]}


def hidden_error(i: Inputs) -> Inputs:
    z1, w2 = real(i["z1"])[:, None], real(i["W2"])
    delta = of_network(real(W1), real(B1)).deltas[1]
    hidden = Step(z1, z1, "relu")
    h_bar = backward_columns([Step(z1.relu(), real([[0.0]]), "sigmoid")], [w2], delta).x
    return {
        "dh1": h_bar[:, 0],
        "mask": output_delta(hidden, torch.ones_like(z1))[:, 0],
        "delta1": output_delta(hidden, h_bar)[:, 0],
    }


def hidden_gradients(i: Inputs) -> Inputs:
    x = real(i["x"])[:, None]
    found = backward_columns([Step(x, x, "relu")], [real(W1)], real(i["delta1"])[:, None])
    w1, b1, h = real(W1), real(B1), 1e-5
    units = torch.eye(w1.numel(), dtype=torch.float64).view(-1, *w1.shape)
    central = [(half_square(w1 + h * e, b1) - half_square(w1 - h * e, b1)) / (2 * h) for e in units]
    gap = (of_network(w1, b1).weights[0].flatten() - torch.stack(central)).abs().max()
    return {"dW1": found.weights[0], "db1": found.biases[0], "max_abs_gap_to_central_difference": gap}


EXAMPLES: dict[str, Compute] = {
    "DLN-Backprop-jacobian-layout": jacobian_layout,
    "MF-5.3.3-double-average": double_average,
    "S940-1.5-two-layer-gradient": two_layer,
    "S940-1.5-backprop-recursion": recursion,
    "VOM-5.4.4-delta2": delta2,
    "VOM-5.4.4-output-gradients": output_gradients,
    "VOM-5.4.4-hidden-error": hidden_error,
    "VOM-5.4.4-hidden-gradients": hidden_gradients,
    "VOM-5.4.3-sign-slip": sign_slip,
}

SET_ASIDE: dict[str, str] = {
    "DLN-Backprop-delta-rules": "its one number, 1.1e-16, is a rounding error and depends on the machine; "
    "tests/ops/backward/test_mlp.py compares the same network with autograd",
}
