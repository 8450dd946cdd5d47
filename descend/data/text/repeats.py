"""Passages of the held-out text that training has, too: of them the model has seen the answer.

    h(t) = Σ_j w_{t+j} p^j mod 2⁶⁴,  j = 0..31        of every place of the training text, by sums from its beginning:
    h(t) = p^−t (S_{t+32} − S_t),  S_t = Σ_{i<t} w_i p^i

Equal passages have equal sums; different ones almost never do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

WIDTH = 32  # tokens of a passage
MOST = 2**24  # training tokens that are looked through
P = 0x9E3779B97F4A7C15  # odd, so it has an inverse modulo 2^64


def describe_repeats(train: Tensor, valid: Tensor, unit: str = "validation") -> dict[str, str]:
    """What a run says of passages of the held-out tokens that training has word by word; nothing where it has none."""
    passages = valid[: len(valid) // WIDTH * WIDTH].reshape(-1, WIDTH)
    if len(train) < WIDTH or not len(passages):
        return {}
    known = hash_passages(train[:MOST].numpy())
    found = np.isin(hash_passages(passages.flatten().numpy())[::WIDTH], known)
    if not found.any():
        return {}
    said = f"{int(found.sum()):,} of {len(found):,} {unit} passages of {WIDTH} tokens"
    return {"in training too": said}


def hash_passages(tokens: NDArray[np.integer]) -> NDArray[np.uint64]:
    """h of the passage that begins at each place (n − 31)."""
    n = len(tokens)
    with np.errstate(over="ignore"):
        powers, back = (raise_to_all(base, n) for base in (P, pow(P, -1, 2**64)))
        sums = np.zeros(n + 1, dtype=np.uint64)
        np.cumsum((tokens.astype(np.uint64) + np.uint64(1)) * powers[:n], out=sums[1:], dtype=np.uint64)
        return (sums[WIDTH:] - sums[:-WIDTH]) * back[: n + 1 - WIDTH]


def raise_to_all(base: int, n: int) -> NDArray[np.uint64]:
    """1, b, b², .. bⁿ modulo 2⁶⁴."""
    factors = np.full(n + 1, base, dtype=np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)
