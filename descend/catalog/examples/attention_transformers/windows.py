"""Worked examples of causal-sliding-window, grouped-query-attention and multi-query-attention."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch

from descend.catalog.examples import Compute, Inputs
from descend.models.llama import Llama, LlamaConfig
from descend.nn.attention.multi_head import Attention
from descend.ops.attention.causal_window import window_entries
from descend.theory.cache import cache_numbers, group_of, per_device


def sliding_window(i: Inputs) -> Inputs:
    t, keys = i["T"], i["w"] + 1  # the closed interval [i − w, i]
    full, some = window_entries(t, t), window_entries(t, keys)
    return {
        "entries_window": some,
        "entries_causal_full": full,
        "ratio_exact": full / some,
        "ratio_T_over_w": t / i["w"],
        "keys_in_interval": keys,
    }


def groups(i: Inputs) -> Inputs:
    attn = Attention(i["heads"], i["heads"], i["G"])
    sets = attn.k.out_features // attn.head_size
    found = [group_of(head, i["heads"], sets) for head in range(i["heads"])]
    return {"kv_sets": sets, "heads_per_set": found.count(0), "assignment": found}


def groups_per_device(i: Inputs) -> Inputs:
    grouped = per_device(i["GPT3_175B_GQA_MB"], i["G"], i["gpus"])
    single = per_device(i["GPT3_175B_MQA_MB"], 1, i["gpus"])
    return {"GQA_MB_per_gpu": grouped, "MQA_MB_per_gpu_replicated": single, "equal": grouped == single}


def generalises(i: Inputs) -> Inputs:
    torch.manual_seed(i["seed"])
    heads = i["heads"]
    single, full = (Attention(i["D"], heads, n, i["head_dim"]).double() for n in (1, heads))
    full.load_state_dict(single.state_dict() | {
        f"{name}.{p}": single.get_parameter(f"{name}.{p}").repeat(heads, *(1,) * (p == "weight"))
        for name in ("k", "v") for p in ("weight", "bias")
    })  # fmt: skip
    x = torch.randn(1, i["T"], i["D"], dtype=torch.float64)
    gap = (single(x) - full(x)).abs().max()
    return {"max_difference": 0.0 if gap < 1e-12 else gap.detach(), "equal": bool(gap < 1e-12)}


@cache
def parameters(config: LlamaConfig) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in Llama(config).parameters())


def llama_2(i: Inputs) -> Inputs:
    found = {}
    for name in ("7B", "13B", "70B"):
        depth, width, hidden, heads, _ = i[name]
        full = LlamaConfig(i["vocab"], 4096, width, depth, heads, heads, hidden)
        if name == "70B":
            found["70B_with_8_groups"] = parameters(replace(full, kv_heads=8))
        else:
            found[f"{name}_with_MHA"] = parameters(full)
            found[f"{name}_with_1_group"] = parameters(replace(full, kv_heads=1))
    return found


def reduction(i: Inputs) -> Inputs:
    return {"factor": [cache_numbers(heads, 64) / cache_numbers(1, 64) for heads in i["heads"]]}


def mqa_cache(i: Inputs) -> Inputs:
    full, single = (cache_numbers(heads, i["d_k"], i["layers"]) for heads in (i["H"], 1))
    to_mb = i["T"] * i["bytes"] / 1e6
    return {
        "ratio": full // single,
        "MB_per_sequence_multi_head": full * to_mb,
        "MB_per_sequence_multi_query": single * to_mb,
    }


EXAMPLES: dict[str, Compute] = {
    "MF-40.6-sliding-window": sliding_window,
    "DLN-GQA-example": groups,
    "DLN-GQA-per-gpu": groups_per_device,
    "DLN-GQA-generalises": generalises,
    "DLN-GQA-llama2": llama_2,
    "DLN-MQA-reduction": reduction,
    "MF-38.4-mqa-cache": mqa_cache,
}

SET_ASIDE: dict[str, str] = {}
