"""Worked examples of the family efficient-inference."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs
from descend.nn.decoding.cache import Cache
from descend.ops.attention.dot_product import attention, causal_mask
from descend.theory.cache import cached_products, causal_products, full_products


def equality(i: Inputs) -> Inputs:
    """Token by token through the cache, and all at once under the mask; every projected row is counted."""
    t, d, size = i["T"], i["d"], i["head_dim"]
    random = torch.Generator().manual_seed(i["seed"])
    x = torch.randn(t, d, generator=random, dtype=torch.float64)
    w_q, w_k, w_v = torch.randn(3, d, size, generator=random, dtype=torch.float64)
    whole, weights = attention(x @ w_q, x @ w_k, x @ w_v, causal_mask(t))
    cache = Cache(torch.zeros(1, 2, 1, 1, t, size, dtype=torch.float64))
    rows, with_cache, without = [], 0, 0
    for step in range(t):
        new = x[step : step + 1]
        [layer] = cache.extend(1)
        layer.new[0], layer.new[1] = new @ w_k, new @ w_v
        rows.append(attention(new @ w_q, layer.k[0, 0], layer.v[0, 0])[0])
        with_cache, without = with_cache + len(new), without + len(x[: step + 1])
    return {
        "equal_within_1e-12": bool((torch.cat(rows) - whole).abs().max() < 1e-12),
        "upper_triangle_weights_all_zero": bool((weights.triu(1) == 0).all()),
        "key_projections_without_cache": without,
        "key_projections_with_cache": with_cache,
    }


def cost(i: Inputs) -> Inputs:
    t, d = i["T"], i["d"]
    return {
        "naive_sum": sum(step * step * d for step in range(1, t + 1)),
        "naive_closed_form": full_products(t) * d,
        "cached_sum": sum(step * d for step in range(1, t + 1)),
        "cached_closed_form": cached_products(t) * d,
        "naive_over_T3": full_products(t) * d / t**3,
        "cached_over_T2": cached_products(t) * d / t**2,
    }


def work_per_token(i: Inputs) -> Inputs:
    with_cache, without = cached_products(i["n"]), causal_products(i["n"])
    return {"with_cache": with_cache, "without_cache": without, "ratio": without / with_cache}


EXAMPLES: dict[str, Compute] = {
    "DLN-KVCache-equality": equality,
    "MF-18.7.7-inference-cost": cost,
    "DLD-11.5.2-kv-cache": work_per_token,
}

SET_ASIDE: dict[str, str] = {}
