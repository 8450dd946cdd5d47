"""Worked examples of t5 and span-corruption."""

from __future__ import annotations

from dataclasses import replace

import torch

from descend.catalog.examples import Compute, Inputs
from descend.data.text.spans import corrupt
from descend.models.t5 import T5, T5Config


def parameters(config: T5Config) -> int:
    """Built without memory for the numbers, then counted."""
    with torch.device("meta"):
        return sum(p.numel() for p in T5(config).parameters())


def size(i: Inputs) -> Inputs:
    depth = i["layers_each_side"]
    config = T5Config(
        vocab=i["vocab"], width=i["d_model"], depth=depth, decoder_depth=depth, heads=i["heads"],
        head_size=i["d_kv"], hidden=i["d_ff"], buckets=i["buckets"],
    )  # fmt: skip
    square = replace(config, head_size=i["d_model"] // i["heads"])
    return {"params": parameters(config), "params_if_H_dkv_equals_d_model": parameters(square)}


def spans(i: Inputs) -> Inputs:
    words, sentinels = i["x"].split(), ["[X]", "[Y]", "[Z]"]
    gone = torch.zeros(1, len(words), dtype=torch.bool)
    for span in i["spans"]:
        inside = span.split()
        at = next(n for n in range(len(words)) if words[n : n + len(inside)] == inside)
        gone[0, at : at + len(inside)] = True
    names = [*words, *reversed(sentinels)]  # the first sentinel is the last token
    source, target = corrupt(torch.arange(len(words))[None], gone, first=len(names) - 1)
    said = [" ".join(names[n] for n in row) for row in (source[0].tolist(), target[0].tolist())]
    return {
        "input": said[0], "target": said[1], "words_corrupted": int(gone.sum()), "words_total": len(words),
    }  # fmt: skip


SIZES = ("Small", "Base", "Large", "3B", "11B")
EXAMPLES: dict[str, Compute] = {
    **{f"MF-36.9.2-T5-{name}": size for name in SIZES},
    "MF-36.5.2-span-corruption": spans,
}

SET_ASIDE: dict[str, str] = {}
