"""Worked examples of multi-head-latent-attention."""

from __future__ import annotations

import numpy as np
import torch

from descend.catalog.examples import Compute, Inputs
from descend.metrics.comparison import ascending, differences, wins
from descend.nn.attention.latent import LatentAttention, LatentSizes
from descend.ops.attention.absorption import absorb, absorb_with_rope, spread
from descend.ops.attention.rotary import frequencies
from descend.theory.cache import cache_numbers, equivalent_groups, latent_cache_numbers


def kv_elements(i: Inputs) -> Inputs:
    latent, turned = i["d_c_not_in_text"], i["d_h_R_not_in_text"]
    count = latent_cache_numbers(latent, turned)
    return {
        "elements_per_layer": count,
        "multiple_of_d_h": count / i["d_h"],
        "equivalent_gqa_groups": equivalent_groups(latent, turned, i["d_h"]),
    }


def table(i: Inputs) -> Inputs:
    full = cache_numbers(i["heads_inferred"], i["d_h"], i["layers_inferred"])
    latent = latent_cache_numbers(i["d_c"], i["d_h_R"], i["layers_inferred"])
    return {
        "MHA_K_elements": full / 1000,
        "MLA_K_elements": latent / 1000,
        "ratio_MLA_over_MHA": latent / full,
        "reduction_percent": 100 * (1 - latent / full),
    }


def dense_order(i: Inputs) -> Inputs:
    rows = i["rows_MQA_GQA_MHA"]
    return {
        "monotone_everywhere": ascending(rows),
        "MHA_minus_MQA": differences(rows, 0, 2),
        "MHA_minus_GQA": differences(rows, 1, 2),
    }


def latent_order(i: Inputs) -> Inputs:
    small, large = (differences(i[f"{size}_MHA_MLA"], 0, 1) for size in ("small", "large"))
    return {
        "small_difference": small,
        "large_difference": large,
        "wins": wins(small) + wins(large),
        "rows": len(small) + len(large),
    }


def absorption(i: Inputs) -> Inputs:
    """Drawn in this order: h, W^Q, W^DKV, W^UK."""
    d, d_h, d_c, t = i["d_model"], i["d_h"], i["d_c"], i["T"]
    draw = np.random.default_rng(i["seed"]).standard_normal
    h, w_q, w_d, w_uk = (torch.from_numpy(draw(shape)) for shape in ((t, d), (d_h, d), (d_c, d), (d_h, d_c)))
    c = h @ w_d.T
    naive, joined = (h @ w_q.T) @ (c @ w_uk.T).T, h @ absorb(w_q, w_uk) @ c.T
    apart = torch.arange(t)[:, None] * frequencies(d_h, dtype=torch.float64)
    found = spread(absorb_with_rope(w_q, w_uk, apart))
    return {
        "equal_within_1e-12": bool((naive - joined).abs().max() < 1e-12),
        "spread_of_middle_matrix_with_rope": found,
        "position_dependent": bool(found > 1e-12),
    }


def cached_equals_full(i: Inputs) -> Inputs:
    torch.manual_seed(i["seed"])
    sizes = LatentSizes(i["d_c_q"], i["d_c"], i["d_h"], i["d_h_R"], i["d_h"])
    attn = LatentAttention(i["d_model"], i["n_h"], sizes).double()
    h = torch.randn(1, i["T"], i["d_model"], dtype=torch.float64)
    angles = torch.arange(i["T"])[:, None] * frequencies(i["d_h_R"], dtype=torch.float64)
    cos, sin = angles.cos(), angles.sin()
    full, kept, steps = attn(h, (cos, sin)), h.new_zeros(1, 0, i["d_c"] + i["d_h_R"]), []
    for t in range(i["T"]):
        new, at = h[:, t : t + 1], (cos[t : t + 1], sin[t : t + 1])
        kept = torch.cat([kept, attn.latents(new, at)], 1)
        steps.append(attn.attend_absorbed(attn.queries(new, at), kept[:, None], None))
    return {
        "equal_within_1e-12": bool((torch.cat(steps, 1) - full).abs().max() < 1e-12),
        "cached_elements_per_token": kept.shape[-1],
        "mha_elements_per_token": cache_numbers(i["n_h"], i["d_h"]),
    }


def down_projection(i: Inputs) -> Inputs:
    sizes = LatentSizes(None, i["d_c"], i["d_h"], i["d_h"] // 2, i["d_h"])
    with torch.device("meta"):
        attn = LatentAttention(i["d_model_not_in_text"], i["n_h"], sizes)
    keys = attn.heads * sizes.plain
    return {
        "d_model": attn.kv_down.in_features,
        "n_h_times_d_h": keys,
        "equal": attn.kv_down.in_features == keys,
        "W_DKV_params": sizes.kv_rank * attn.kv_down.in_features,
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-MLA-kv-elements": kv_elements,
    "DLN-MLA-table-small": table,
    "DLN-MLA-table-large": table,
    "DLN-MLA-dense7b-order": dense_order,
    "DLN-MLA-vs-MHA-order": latent_order,
    "DLN-MLA-absorption": absorption,
    "DLN-MLA-cached-equals-full": cached_equals_full,
    "DLN-MLA-down-projection-size": down_projection,
}

SET_ASIDE: dict[str, str] = {}
