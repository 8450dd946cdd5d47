"""Worked examples of causal-mask and padding-mask."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.data.text.plain import window
from descend.ops.attention.dot_product import additive, causal_mask, padding_mask, weigh


def causal_visibility(i: Inputs) -> Inputs:
    mask = causal_mask(i["T"])
    return {"visible": mask[i["i"] - 1].nonzero()[:, 0] + 1, "visible_counts_T5": mask.sum(-1)}


def s940_causal(i: Inputs) -> Inputs:
    s = real(i["scores"])
    return {"weights": weigh(s, s, causal_mask(len(s)))[1]}


def causal_direction(i: Inputs) -> Inputs:
    right = causal_mask(i["n"])
    printed = right.T
    following = torch.arange(i["n"] - 1)
    return {
        "printed_rule": printed.int(),
        "correct_rule": right.int(),
        "printed_rule_sees_next_token": bool(printed[following, following + 1].any()),
        "correct_rule_sees_next_token": bool(right[following, following + 1].any()),
    }


def vom_mask(i: Inputs) -> Inputs:
    mask, s = causal_mask(i["n"]), torch.zeros(i["n"], i["n"], dtype=torch.float64)
    return {"M": additive(mask), "A_for_equal_scores": weigh(s, s, mask)[1]}


def padding(i: Inputs) -> Inputs:
    s, pad = real(i["S"]), [m != "0" for m in i["pad_mask"]]
    real_tokens = pad.index(True)
    keys = padding_mask(torch.tensor([real_tokens]), len(pad))[0, 0]
    as_printed = (s + additive(keys & keys.T, s.dtype)).softmax(-1)  # 0/0 where a query may look nowhere
    key_only = weigh(s, s, keys)[1]
    return {
        "row_of_padded_query_as_printed": as_printed[real_tokens],
        "key_only_mask": key_only,
        "real_rows_agree": torch.allclose(as_printed[:real_tokens], key_only[:real_tokens]),
    }


def shift(i: Inputs) -> Inputs:
    words = i["sentence"].split()
    batch = window(torch.arange(len(words)), torch.tensor([0]), context=len(words) - 1)
    return {"input": [words[n] for n in batch["x"][0]], "target": [words[n] for n in batch["y"][0]]}


EXAMPLES: dict[str, Compute] = {
    "MF-33.1.1-causal-visibility": causal_visibility,
    "S940-5.1-causal-mask": s940_causal,
    "DLD-11.5.2-causal-mask": causal_direction,
    "VOM-9.10.3-mask": vom_mask,
    "VOM-9.10.1-shift": shift,
    "MF-32.3.1-padding-mask": padding,
}

SET_ASIDE: dict[str, str] = {}
