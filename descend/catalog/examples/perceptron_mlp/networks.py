"""Worked examples of the family perceptron-mlp: multilayer perceptrons."""

from __future__ import annotations

import math

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.models.mlp import MLP, MLPConfig


def count(model: MLP) -> int:
    return sum(p.numel() for p in model.parameters())


def my_net(i: Inputs) -> Inputs:
    inputs = math.prod(i["image_shape"])
    model = MLP(MLPConfig(inputs, hidden=tuple(i["dims"][1:-1]), outputs=i["dims"][-1]))
    return {
        "d0": inputs,
        "output_shape": model(torch.zeros(1, *i["image_shape"]))[0].shape,
        "params_per_layer": [sum(p.numel() for p in layer.parameters()) for layer in model.layers],
        "params_total": count(model),
    }


def parameter_counts(i: Inputs) -> Inputs:
    configs = {name: MLPConfig(w[0], tuple(w[1:-1]), w[-1]) for name, w in i["widths"].items()}
    return {name: c.parameters for name, c in configs.items()} | {
        "torch": {name: count(MLP(c)) for name, c in configs.items()}
    }


def vom_forward(i: Inputs) -> Inputs:
    w1, b1, w2, b2, x = (real(i[name]) for name in ("W1", "b1", "W2", "b2", "x"))
    model = MLP(MLPConfig(2, (3,), 1, head="sigmoid")).double()
    model.load_state_dict({"layers.0.weight": w1, "layers.0.bias": b1, "layers.1.weight": w2, "layers.1.bias": b2})
    with torch.no_grad():
        (z1, h1), (z2, y) = model.trace(x[None])
    return {
        "W1x": z1[0] - b1,
        "z1": z1[0],
        "h1": h1[0],
        "z2": z2[0, 0],
        "y": y[0, 0],
        "parameters": count(model),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-Pytorch-MyNet": my_net,
    "MF-3.2.1-param-count": parameter_counts,
    "VOM-5.2-mlp-forward": vom_forward,
}

SET_ASIDE: dict[str, str] = {}
