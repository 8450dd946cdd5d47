"""Worked examples of relative-position-bias."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs
from descend.nn.attention.relative_bias import ClippedRelativeBias, offsets


def words_apart(i: Inputs) -> Inputs:
    words = i["tokens"]
    apart = offsets(len(words), len(words))[words.index("I")]
    return {
        "I_to_student": int(apart[words.index("student")]),
        "I_to_am": int(apart[words.index("am")]),
        "absolute": [words.index("I") + 1, words.index("student") + 1],
    }


def with_a_cache(i: Inputs) -> Inputs:
    before, after = i["T_before"], i["T_after"]
    bias = ClippedRelativeBias(1, after)
    old, new = bias(before, before), bias(after, after)
    row = offsets(after - before, after)[0]
    return {
        "old_block_unchanged": torch.equal(new[..., :before, :before], old),
        "new_row_offsets": row.tolist(),
        "new_entries_needed_in_causal_decoding": int((row <= 0).sum()),
    }


EXAMPLES: dict[str, Compute] = {"DLN-RelPos-student": words_apart, "DLN-RelPos-kvcache": with_a_cache}

SET_ASIDE: dict[str, str] = {}
