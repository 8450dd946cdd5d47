"""Worked examples of learned-position-embeddings and position-wise-ffn."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.models.gpt2 import GPT2, GPT2Config
from descend.nn.mlp import MLP


def position_range(i: Inputs) -> Inputs:
    table = GPT2(GPT2Config(vocab=2, context=i["L_max"], width=2, depth=0, heads=1)).wpe.weight
    missing = range(len(table), i["length"])
    return {
        "covered": [0, len(table) - 1],
        "missing": [missing.start, missing.stop - 1],
        "missing_count": len(missing),
    }


def feed_forward(i: Inputs) -> Inputs:
    w1, w2 = real(i["W1"]), real(i["W2"])
    mlp = MLP(w1.shape[1], w1.shape[0], torch.nn.ReLU()).double()
    mlp.load_state_dict({"up.weight": w1, "up.bias": w1[:, 0] * 0, "down.weight": w2, "down.bias": w2[:, 0] * 0})
    x = real(i["x"])
    with torch.no_grad():
        pre = mlp.up(x)
        return {"pre": pre, "h": mlp.activation(pre), "y": mlp(x)}


EXAMPLES: dict[str, Compute] = {
    "VOM-11.4-lookup-range": position_range,
    "VOM-9.8.10-ffn-3-4": feed_forward,
    "VOM-9.8.10-ffn-4-2": feed_forward,
}

SET_ASIDE: dict[str, str] = {}
