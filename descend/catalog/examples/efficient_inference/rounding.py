"""Worked examples: weights as codes, and attention in tiles."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.attention.flash import add_tile, begin, finish, tiles
from descend.ops.quantization import min_max_codes


def int8(i: Inputs) -> Inputs:
    """Codes 0..255: uint8, of which a signed byte holds half."""
    x = real(i["x"])
    found = min_max_codes(x)
    return {
        "codes": found.codes,
        "code_min": int(found.codes.min()),
        "code_max": int(found.codes.max()),
        "dequantized": found.values(),
        "max_abs_error": float((found.values() - x).abs().max()),
        "half_step": float(found.step) / 2,
        "fits_signed_int8": bool(found.codes.max() <= torch.iinfo(torch.int8).max),
    }


def online_softmax(i: Inputs) -> Inputs:
    """One query's scores, block by block, and all at once."""
    s, v = real(i["scores"])[None], real(i["V"])
    found = begin(s, v.shape[1])
    for block in tiles(s.shape[1], i["block"]):
        found = add_tile(found, s[:, block], v[block])
    tiled, exact = finish(found)[0][0], (s.softmax(-1) @ v)[0]
    return {"tiled": tiled, "exact": exact, "max_abs_diff": float((tiled - exact).abs().max())}


EXAMPLES: dict[str, Compute] = {"MF-28.4.1-int8": int8, "S940-6.4-flash-online-softmax": online_softmax}

SET_ASIDE: dict[str, str] = {
    "S940-6.4-flash-online-softmax:max_abs_diff": "a rounding error, of the order of 1e-16 whatever its digits",
    "S940-6.4-flash-speedup": "a figure of GPUs; the lab tiled-attention measures memory and time on this machine",
}
