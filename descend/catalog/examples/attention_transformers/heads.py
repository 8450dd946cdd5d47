"""Worked examples of multi-head-attention."""

from __future__ import annotations

import math

import torch

from descend.catalog.examples import Compute, Inputs
from descend.nn.attention.multi_head import join_heads, split_heads
from descend.theory import attention as theory


def s940_heads(i: Inputs) -> Inputs:
    k = theory.head_size(i["d_model"], i["h"])
    count = theory.parameters(i["d_model"], i["h"], k)
    return {"d_k": k, "params_no_bias": count, "equals_4_d2": 4 * i["d_model"] ** 2}


def dld_heads(i: Inputs) -> Inputs:
    heads = torch.zeros(1, i["k"], i["N"], i["v"])
    shapes = theory.projection_shapes(i["d"], i["k"], i["v"])
    return {
        "concat": join_heads(heads)[0].shape,
        "W_MSA": shapes["W^O"],
        "d_equals_kv": theory.head_size(i["d"], i["k"]) == i["v"],
        "parameters": theory.parameters(i["d"], i["k"], i["v"]),
    }


def vom_heads(i: Inputs) -> Inputs:
    k = theory.head_size(i["d_model"], i["h"])
    concat = join_heads(split_heads(torch.zeros(1, 1, i["d_model"]), i["h"])).shape[-1]
    return {"d_k": k, "concat": concat, "W_i_shape": theory.projection_shapes(i["d_model"], i["h"], k)["W^Q"]}


def head_slices(i: Inputs) -> Inputs:
    columns = {n: theory.head_columns(n - 1, i["d_k"]) for n in (1, 2, 8)}
    return {f"head{n}": [c.start + 1, c.stop] for n, c in columns.items()}  # the book counts from 1


def out_parameters(i: Inputs) -> Inputs:
    return {"params": math.prod(theory.projection_shapes(i["d_model"], 8, i["d_model"] // 8)["W^O"])}


def block_sum(i: Inputs) -> Inputs:
    torch.manual_seed(i["seed"])
    heads = torch.randn(1, i["h"], i["n"], i["d_k"], dtype=torch.float64)
    w_o = torch.randn(i["h"] * i["d_k"], i["h"] * i["d_k"], dtype=torch.float64)
    parts = [heads[0, j] @ w_o[list(theory.head_columns(j, i["d_k"]))] for j in range(i["h"])]
    return {"equal": torch.allclose(join_heads(heads)[0] @ w_o, torch.stack(parts).sum(0))}


def cost_parity(i: Inputs) -> Inputs:
    d, n = i["d_model"], i["n"]
    single, split, wide = (theory.flops(n, d, h, k) for h, k in ((1, d), (8, d // 8), (8, d)))
    return {
        "product_8x64": 8 * theory.head_size(d, 8),
        "ratio_8x64_to_single": split / single,
        "ratio_8x512_to_single": wide / single,
        "params_single_512": theory.parameters(d, 1, d),
        "params_8x64": theory.parameters(d, 8, d // 8),
        "params_8x512": theory.parameters(d, 8, d),
    }


EXAMPLES: dict[str, Compute] = {
    "S940-5.2-mha-parameters": s940_heads,
    "DLD-5.7-msa-shapes": dld_heads,
    "VOM-10.2-dims": vom_heads,
    "VOM-10.2.1-head-slices": head_slices,
    "VOM-10.2.2-wo-params": out_parameters,
    "VOM-10.2.1-block-sum": block_sum,
    "VOM-10.3-cost-parity": cost_parity,
}

SET_ASIDE: dict[str, str] = {}
