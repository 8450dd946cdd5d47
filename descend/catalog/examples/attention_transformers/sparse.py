"""Worked examples of sparse-softmax, sliding-window-attention, sparse-transformer-attention and longformer."""

from __future__ import annotations

from itertools import pairwise

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.attention.patterns import dilated, pairs, question_tokens, reach, strided, window, with_global
from descend.ops.attention.sparse import sparse_jacobian, sparse_softmax
from descend.theory.attention_cost import (
    causal_pairs,
    full_pairs,
    global_pairs_bound,
    strided_pairs_bound,
    window_pairs,
)


def jacobian(i: Inputs) -> Inputs:
    s = real(i["scores"])
    a = sparse_softmax(s, torch.arange(1, len(s) + 1) != i["forbidden_index_1based"])
    return {"A": a, "jacobian": sparse_jacobian(a)}


def window_count(i: Inputs) -> Inputs:
    return {
        "enumerated": pairs(window(i["T"], i["w_radius"])),
        "closed_form": window_pairs(i["T"], i["w_radius"]),
        "full_attention": full_pairs(i["T"]),
    }


def receptive_field(i: Inputs) -> Inputs:
    middle = i["T"] // 2
    seen = reach(window(i["T"], i["w_radius"]), i["L"])[middle].nonzero().flatten()
    return {
        "L_times_w": i["L"] * i["w_radius"],
        "reach_right": int(seen.max()) - middle,
        "reach_left": middle - int(seen.min()),
    }


def dilated_window(i: Inputs) -> Inputs:
    seen = dilated(i["T"], i["w_radius"], i["stride"])[i["i"] - 1].nonzero().flatten() + 1
    return {"neighbours": seen, "count_2w+1": len(seen), "reach_one_layer": int(seen.max()) - i["i"]}


def strided_pairs(i: Inputs) -> Inputs:
    bound = strided_pairs_bound(i["n"])
    return {
        "pairs": pairs(strided(i["n"], i["stride"])),
        "n_sqrt_n": int(bound / 2),
        "upper_bound_2_n_sqrt_n": int(bound),
        "dense_causal_pairs": causal_pairs(i["n"]),
    }


def global_count(i: Inputs) -> Inputs:
    found = pairs(with_global(window(i["T"], i["w_radius"]), torch.tensor(i["G"]) - 1))
    return {
        "enumerated": found,
        "bound": global_pairs_bound(i["T"], i["w_radius"], len(i["G"])),
        "ratio_to_full": found / full_pairs(i["T"]),
    }


def longformer_pairs(i: Inputs) -> Inputs:
    first = question_tokens(i["global_tokens"])
    found = [pairs(with_global(window(n, i["half_window"]), first)) for n in i["n"]]
    return {
        "pairs": found,
        "growth": [b / a for a, b in pairwise(found)],
        "dense": [full_pairs(n) for n in i["n"]],
    }


EXAMPLES: dict[str, Compute] = {
    "MF-35.8-sparse-jacobian": jacobian,
    "MF-35.3.1-window-count": window_count,
    "MF-35.3.2-receptive-field": receptive_field,
    "MF-35.4-dilated-window": dilated_window,
    "S940-6.3-sparse-pairs": strided_pairs,
    "MF-35.6.1-global-count": global_count,
    "S940-6.3-longformer-pairs": longformer_pairs,
}

SET_ASIDE: dict[str, str] = {}
