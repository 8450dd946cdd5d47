"""Worked examples of the family activations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from scipy.optimize import brentq
from torch import Tensor, nn

from descend.catalog.examples import Compute, Inputs, real
from descend.metrics.units import slope
from descend.ops import activations as ops
from descend.ops.softmax import (
    jacobian,
    largest_exponent,
    log_softmax,
    log_sum_exp,
    naive_softmax,
    softmax,
    softmin,
)

# The table


def table(i: Inputs) -> Inputs:
    x, alpha = real(i["x"]), {"prelu": (i["alpha_prelu_elu"],), "elu": (i["alpha_prelu_elu"],)}
    values = {
        name: {"f": f(x, *alpha.get(name, ())), "df": df(x, *alpha.get(name, ()))}
        for name, (f, df) in ops.TABLE.items()
    }
    return {"values": values}


def identity_collapse(i: Inputs) -> Inputs:
    w1, w2, x = (real(i[name]) for name in ("W1", "W2", "x"))
    one = w2 @ w1
    deep = ops.identity(w2 @ ops.identity(w1 @ x))
    return {"max_abs_difference": (deep - one @ x).abs().max(), "rank_of_product": int(torch.linalg.matrix_rank(one))}


# Sigmoid and tanh


def value_and_slope(f: Callable[[Tensor], Tensor], df: Callable[[Tensor], Tensor]) -> Compute:
    """MF's check of a function: its value, the derivative in closed form, and the one of autograd."""

    def compute(i: Inputs) -> Inputs:
        z = real(i["z"])
        return {"value": f(z), "derivative": df(z), "derivative_autograd": slope(f, z)}

    return compute


def sigmoid_derivative(i: Inputs) -> Inputs:
    d = ops.sigmoid_slope(real(i["z"]))
    return {"sigma": ops.sigmoid(real(i["z"])), "derivative": d, "max_derivative": d.max(), "derivative_at_10": d[-1]}


def sigmoid_zero(i: Inputs) -> Inputs:
    return {"y": ops.sigmoid(real(i["z"]))}


def tanh_forms(i: Inputs) -> Inputs:
    return {"values": ops.tanh_by_exponentials(real(i["x"]))}


def tanh_identity(i: Inputs) -> Inputs:
    return {"tanh": ops.tanh_by_sigmoid(real(i["z"]))}


# The ReLU family


def slopes_at_zero(i: Inputs) -> Inputs:
    x = real(i["x"])
    return {
        "relu": slope(ops.relu, x),
        "leaky_relu_0.01": slope(lambda x: ops.leaky_relu(x, 0.01), x),
        "prelu_0.25": slope(lambda x: ops.leaky_relu(x, real(0.25)), x),
        "elu_1": slope(ops.elu, x),
    }


def relu_vector(i: Inputs) -> Inputs:
    return {"y": ops.relu(real(i["x"]))}


def relu_nonlinear(i: Inputs) -> Inputs:
    x, y = real(i["x"]), real(i["y"])
    g = {name: ops.relu(2 * at) for name, at in (("g(-1)", x), ("g(1)", y), ("g(0)", x + y))}
    return {**g, "sum": g["g(-1)"] + g["g(1)"]}


def rrelu_test_slope(i: Inputs) -> Inputs:
    x = real(i["x"])
    return {
        "slope": slope(lambda x: ops.rrelu_test(x, i["l"], i["u"]), x),
        "torch_eval_output_at_-1": nn.RReLU(i["l"], i["u"]).eval()(x),
    }


def elu_differentiable(i: Inputs) -> Inputs:
    zero, h = real(i["x"]).double(), 1e-7
    return {
        "left_derivative": [ops.elu_slope(zero, a) for a in i["alpha"]],
        "left_numeric": [(ops.elu(zero, a) - ops.elu(zero - h, a)) / h for a in i["alpha"]],
        "right_derivative": [ops.elu_slope(zero + h, a) for a in i["alpha"]],
    }


# GELU and SiLU


def lowest(df: Callable[[Tensor], Tensor]) -> Tensor:
    """Where the derivative is 0 on the negative side."""
    return real(brentq(lambda x: df(real(x)).item(), -2.0, -0.1, xtol=1e-14))


def dips(i: Inputs) -> Inputs:
    gelu_at, silu_at, one = lowest(ops.gelu_slope), lowest(ops.silu_slope), real(1.0)
    return {
        "gelu_argmin": gelu_at,
        "gelu_min": ops.gelu(gelu_at),
        "silu_argmin": silu_at,
        "silu_min": ops.silu(silu_at),
        "gelu_at_1": ops.gelu(one),
        "silu_at_1": ops.silu(one),
    }


def gelu_approximation(i: Inputs) -> Inputs:
    z, grid = real(i["z"]), torch.arange(-800_000, 800_001, dtype=torch.float64) * 1e-5
    gap, at = (ops.gelu(grid) - ops.gelu_tanh(grid)).abs().max(dim=0)
    return {
        "gelu_exact": ops.gelu(z),
        "gelu_tanh": ops.gelu_tanh(z),
        "max_abs_error": gap,
        "at_abs_z": grid[at].abs(),
    }


# Softmax


def softmax_123(i: Inputs) -> Inputs:
    return {"softmax": softmax(real(i["x"]))}


def softmin_123(i: Inputs) -> Inputs:
    return {"softmin": softmin(real(i["x"]))}


def softmax_sigmoid(i: Inputs) -> Inputs:
    x = real(i["x1"])
    return {"values": softmax(torch.stack([x, torch.full_like(x, i["x2"])], -1))[:, 0]}


def softmax_jacobian(i: Inputs) -> Inputs:
    z = real(i["z"])
    p = softmax(z)
    j = jacobian(p)
    by_autograd = torch.autograd.functional.jacobian(softmax, z)
    return {"p": p, "J": j, "J_autograd": by_autograd, "row_sums_abs_max": j.sum(-1).abs().max()}


def vom_jacobian(i: Inputs) -> Inputs:
    z = real(i["z"])
    j = jacobian(softmax(z))
    gap = (j - torch.autograd.functional.jacobian(softmax, z)).abs().max()
    return {"max_abs_difference": gap, "row_sum": j.sum(-1).abs().max(), "J": j}


def vom_softmax(i: Inputs) -> Inputs:
    z = real(i["z"])
    return {"exp": (log_softmax(z) + log_sum_exp(z)).exp(), "sum": log_sum_exp(z).exp(), "softmax": softmax(z)}


def amplification(i: Inputs) -> Inputs:
    z = real(i["z"])
    p = softmax(z)
    of_z, of_p = z[0] - z[1], p[0] - p[1]
    return {
        "differences_grow": bool(of_p > of_z),
        "logit_difference": of_z,
        "probability_difference": of_p,
        "probability_ratio": p[0] / p[1],
    }


def log_softmax_range(i: Inputs) -> Inputs:
    x = real(i["x"]).double()
    naive = softmax(x).log()
    return {"log_softmax": log_softmax(x), "naive_log_of_softmax": naive}


def stable(i: Inputs) -> Inputs:
    z = real(i["z"])
    return {
        "exp_1000_float32": z[0].float().exp(),
        "exp_1000_float64": z[0].exp(),
        "naive": naive_softmax(z),
        "stable": softmax(z),
        "log_p": log_softmax(z),
        "largest_safe_exponent_float32_float64": [largest_exponent(d) for d in (torch.float32, torch.float64)],
    }


def saturation_limits(i: Inputs) -> Inputs:
    x = real(i["x"]).double()
    return {
        "sigmoid": ops.sigmoid_slope(x),
        "tanh": ops.tanh_slope(x),
        "relu": ops.relu_slope(x),
        "leaky_0.01": ops.leaky_relu_slope(x, 0.01),
        "gelu": ops.gelu_slope(x),
        "elu": ops.elu_slope(x),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-Activation-table": table,
    "DLN-Identity-collapse": identity_collapse,
    "MF-3.3.2-sigmoid": value_and_slope(ops.sigmoid, ops.sigmoid_slope),
    "S940-1.2-sigmoid-derivative": sigmoid_derivative,
    "VOM-5.1-sigmoid-zero": sigmoid_zero,
    "DLN-Tanh-forms": tanh_forms,
    "MF-3.3.3-tanh": value_and_slope(ops.tanh, ops.tanh_slope),
    "S940-1.2-tanh-identity": tanh_identity,
    "DLN-ReLU-subgradient-at-0": slopes_at_zero,
    "MF-3.3.4-relu": value_and_slope(ops.relu, ops.relu_slope),
    "VOM-9.8.2-relu-vector": relu_vector,
    "VOM-9.8.3-relu-nonlinear": relu_nonlinear,
    "DLN-RReLU-test-slope": rrelu_test_slope,
    "DLN-ELU-differentiable": elu_differentiable,
    "DLN-GELU-SiLU-nonmonotonic": dips,
    "S940-1.2-gelu-approximation": gelu_approximation,
    "DLN-Softmax-123": softmax_123,
    "DLN-Softmin-123": softmin_123,
    "DLN-Softmax-sigmoid": softmax_sigmoid,
    "MF-3.3.5-softmax-jacobian": softmax_jacobian,
    "VOM-2.8-softmax-jacobian": vom_jacobian,
    "VOM-3.8-softmax": vom_softmax,
    "VOM-3.8-amplification-claim": amplification,
    "DLN-LogSoftmax-range": log_softmax_range,
    "MF-11.1-stable-softmax": stable,
    "DLN-Saturation-limits": saturation_limits,
}

ROUNDING = "the rounding error between two equal forms, which differs from machine to machine"
SET_ASIDE: dict[str, str] = {
    "DLN-Saturation-limits:gelu": "recomputed with Φ(−20) cancelled to 0; the slope at −20 is −1.1014e-86",
    "DLN-Activation-table:max_abs_difference": "the error of a finite difference; autograd is the check in the tests",
    "DLN-Tanh-forms:max_abs_difference": ROUNDING,
    "S940-1.2-tanh-identity:max_abs_difference": ROUNDING,
    "DLN-Softmax-sigmoid:max_abs_difference": ROUNDING,
}
