"""Worked examples of the family recurrent: what a product of many factors does, and windows that are fixed."""

from __future__ import annotations

import torch
from torch import nn

from descend.catalog.examples import Compute, Inputs, real
from descend.nn.fixed_window import input_size
from descend.ops.backward.recurrent import product, tanh_slope
from descend.ops.sequences import flat_one_hot
from descend.optim.rules import SGD
from descend.theory.recurrent import (
    SIGMOID_SLOPE,
    TANH_SLOPE,
    bottleneck,
    decay_of,
    factor,
    log10_norm_power,
    norm,
    power_norm,
    radius,
    scalar_tanh_gradient,
    temporal_condition,
    where_tanh_slope_is,
)


def two_words(i: Inputs) -> Inputs:
    return {"vector": flat_one_hot(torch.tensor(i["index_0based"]), i["vocab"])}


def flat_sentence(i: Inputs) -> Inputs:
    return {"dimension": input_size(i["T_max"], i["V"])}


def hundred_steps(i: Inputs) -> Inputs:
    found: Inputs = {}
    for w in i["w"]:
        found[f"linear_w{w}"] = factor(w, i["steps"])
        found[f"tanh_w{w}"] = scalar_tanh_gradient(w, i["x_constant"], i["steps"])
    return found


def steepest(i: Inputs) -> Inputs:
    z = torch.linspace(-4, 4, 8001, dtype=torch.float64)
    sigmoid = z.sigmoid()
    return {
        "max_tanh_derivative_at_0": tanh_slope(real(i["z"]).tanh()),
        "bound_abs_derivative": TANH_SLOPE if tanh_slope(z.tanh()).max() <= TANH_SLOPE else float("nan"),
        "sigmoid_derivative_at_0": SIGMOID_SLOPE if (sigmoid * (1 - sigmoid)).max() <= SIGMOID_SLOPE else float("nan"),
    }


def norm_and_radius(i: Inputs) -> Inputs:
    w, n = real(i["W_hh"]), i["n"]
    return {
        "rho": radius(w),
        "spectral_norm": norm(w),
        "log10_norm_pow_n": log10_norm_power(w, n),
        "norm_of_W_pow_n": power_norm(w, n),
        "norm_of_W_pow_10": power_norm(w, 10),
    }


def conditions(i: Inputs) -> Inputs:
    return {f"rho_{rho}": temporal_condition(real([[rho]]), i["T"])[1] for rho in i["rho"]}


def equal_factors(i: Inputs) -> Inputs:
    return {"factor": factor(i["slope"], i["steps"])}


def updates(i: Inputs) -> Inputs:
    """θ = 0 after one step of SGD is minus the update."""

    def update(g: float) -> float:
        layer = nn.Linear(1, 1, bias=False).double()
        layer.weight.data, layer.weight.grad = real([[0.0]]), real([[g]])
        SGD(lr=i["learning_rate"], momentum=0.0).build(layer).step()
        return -layer.weight.item()

    large, small = i["gradients"]
    return {"update_exploding": update(large), "update_normal": update(small)}


def tanh_peak(i: Inputs) -> Inputs:
    return {
        "slope_at_0": tanh_slope(real(float(i["z"])).tanh()),
        "z_where_slope_0.1": where_tanh_slope_is(0.1),
        "z_where_slope_0.01": where_tanh_slope_is(0.01),
    }


def jacobian_norms(i: Inputs) -> Inputs:
    t, (low, high), steps = i["T"], i["rho_const"], i["steps"]
    nilpotent, contracting = real(i["J_nilpotent"]), real(i["J_norm2_contracting"])
    return {
        "const_0_9_after_100": factor(low, steps),
        "const_1_1_after_100": factor(high, steps),
        "product_with_rho_1_minus_1_over_t2": decay_of(1 - 1 / k**2 for k in range(2, t + 1)),
        "closed_form_T_plus_1_over_2T": (t + 1) / (2 * t),
        "nilpotent_norm": norm(nilpotent),
        "nilpotent_product_norm": norm(product(nilpotent.expand(2, 2, 2))),
        "contracting_norm": norm(contracting),
        "contracting_power100_norm": power_norm(contracting, 100),
        "contracting_spectral_radius": radius(contracting),
    }


def powers(others: dict[str, tuple[float, int]]) -> Compute:
    """The eigenvalues of W_h^(T-1): T steps have T - 1 factors."""

    def compute(i: Inputs) -> Inputs:
        w = torch.linalg.matrix_power(real(i["W_h"]), i["T"] - 1)
        return {"vanishing": w[0, 0], "exploding": w[1, 1], **{k: factor(*v) for k, v in others.items()}}

    return compute


def sentence_sizes(i: Inputs) -> Inputs:
    each, ratio = bottleneck(i["total_dims"], i["words"], i["context_dim"])
    return {"total_dims": round(each * i["words"]), "implied_dims_per_word": each, "compression_ratio": ratio}


EXAMPLES: dict[str, Compute] = {
    "DLN-Sequential-window-onehot": two_words,
    "VOM-6.2-flat-onehot": flat_sentence,
    "DLN-LongTerm-vanishing-100": hundred_steps,
    "MF-15.5.2-tanh-derivative": steepest,
    "MF-15.5.2-norm-vs-spectral-radius": norm_and_radius,
    "MF-15.5.3-kappa": conditions,
    "MF-15.6.2-vanishing": equal_factors,
    "MF-15.7.1-exploding-update": updates,
    "MF-16.1.1-tanh-peak": tanh_peak,
    "MF-16.1.1-decay": equal_factors,
    "S940-4.2-jacobian-product": jacobian_norms,
    "VOM-6.4.2-power49": powers({"0.9**50": (0.9, 50), "1.1**48": (1.1, 48)}),
    "VOM-6.4.2-power99": powers({"0.9**100": (0.9, 100), "1.1**100": (1.1, 100), "1.1**96": (1.1, 96)}),
    "MF-17.3.1-bottleneck": sentence_sizes,
}

SET_ASIDE: dict[str, str] = {}
