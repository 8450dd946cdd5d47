"""Worked examples of the family initializers."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import nn

from descend.catalog.examples import Compute, Inputs, real
from descend.nn.init import backward, bound, forget_bias_, he, lecun, xavier
from descend.ops.activations import relu, sigmoid, tanh
from descend.theory.signal import RELU_KEEPS, RELU_VARIANCE, grow_signal, layer_factor


def xavier_bounds(i: Inputs) -> Inputs:
    variance = xavier(i["fan_in"], i["fan_out"])
    a = bound(variance)
    return {"sigma": math.sqrt(variance), "a": a, "uniform_variance": a**2 / 3, "normal_variance": variance}


def xavier_averaging(i: Inputs) -> Inputs:
    forth, back, both = (rule(i["fan_in"], i["fan_out"]) for rule in (lecun, backward, xavier))
    return {
        "arithmetic_mean": (forth + back) / 2,
        "2/(fi+fo)": both,
        "harmonic_mean": 2 / (1 / forth + 1 / back),
    }


def symmetry(i: Inputs) -> Inputs:
    x = real(i["x"]).double()
    return {"sigmoid": sigmoid(x), "tanh": tanh(x)}


def he_bounds(i: Inputs) -> Inputs:
    variance = he(i["fan_in"], 1)
    a = bound(variance)
    return {"sigma": math.sqrt(variance), "a": a, "uniform_variance": a**2 / 3}


def he_halving(i: Inputs) -> Inputs:
    z = torch.linspace(-10, 10, 200_001, dtype=torch.float64)
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    mean, square = (torch.trapezoid(relu(z) ** power * density, z) for power in (1, 2))
    return {"second_moment": RELU_KEEPS, "variance": RELU_VARIANCE, "variance_numeric": square - mean**2}


def he_ratio(i: Inputs) -> Inputs:
    n = 100  # any: the factors do not depend on it
    of_he, of_lecun = (layer_factor(n, rule(n, n)) for rule in (he, lecun))
    return {
        "E_relu_sq": RELU_KEEPS,
        "ratio_he": of_he,
        "ratio_1_over_n": of_lecun,
        "ratio_1_over_n_after_50_layers": grow_signal(1.0, of_lecun, 50),
    }


def propagation(i: Inputs) -> Inputs:
    n = i["width"]
    after = partial(grow_signal, 1.0, layers=i["layers"])
    return {
        "xavier_theory": after(factor=layer_factor(n, xavier(n, n))),
        "he_theory": after(factor=layer_factor(n, he(n, n))),
    }


def forget_bias(i: Inputs) -> Inputs:
    """The forget gate of an LSTM cell that sees nothing: σ of its bias."""
    rates = []
    for b_f in i["b_f"]:
        cell = nn.LSTMCell(1, 1).double()
        forget_bias_(cell, b_f)
        f = (cell.bias_ih + cell.bias_hh).chunk(4)[1]
        rates.append(sigmoid(f.detach())[0])
    return {"sigma_1": rates[0], "sigma_0": rates[1]}


EXAMPLES: dict[str, Compute] = {
    "DLN-Xavier-bounds": xavier_bounds,
    "DLN-Xavier-averaging": xavier_averaging,
    "DLN-Sigmoid-symmetry": symmetry,
    "DLN-He-bounds": he_bounds,
    "DLN-He-halving": he_halving,
    "MF-11.2.2-he": he_ratio,
    "DLN-Init-relu-propagation": propagation,
    "MF-16.4.3-forget-bias": forget_bias,
}

DRAWN = "one draw of weights with a spread of a tenth; the lab signal-propagation measures it with its error"
SET_ASIDE: dict[str, str] = {
    "DLN-Init-relu-propagation:xavier_ratio": DRAWN,
    "DLN-Init-relu-propagation:he_ratio": DRAWN,
}
