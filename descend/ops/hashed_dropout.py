"""Inverted dropout whose mask is a hash of a key and of the place, so that none is stored.

    y_i = x_i / (1 − p)  where  hash(key, i) ≥ p 2³²,  0 elsewhere        ∂x_i = the same of ∂y_i

The key is drawn from torch's generator: one number for a call, where `torch.nn.functional.dropout` draws one for
each value. A mask is the same with compiled code and without it, and p is rounded to a multiple of 2⁻³².

Systems: dropout
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.native import dropout as native

WORD = 2**32 - 1


class Dropped(torch.autograd.Function):
    """The mask is found again on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, key: int) -> Tensor:
        ctx.numbers = p, key
        return drop_by_key(x, p, key)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return Dropped.apply(grads[0], *ctx.numbers), None, None


def drop_hashed(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Dropout of values of any shape with probability p in training; out of training x itself."""
    if not training or p == 0:
        return x
    if not 0 < p < 1:
        raise ValueError(f"p = {p}: the probability to drop is at least 0 and below 1")
    return Dropped.apply(x, p, int(torch.randint(2**62, ())))


def drop_by_key(x: Tensor, p: float, key: int) -> Tensor:
    """The same for a given key."""
    limit, scale = round(p * 2**32), 1 / (1 - p)
    y = native.drop(x, key, limit, scale)
    if y is not None:
        return y
    keep = hash_places(x.numel(), key, x.device) >= limit
    return torch.where(keep.view(x.shape), x * scale, 0)


def hash_places(n: int, key: int, device: torch.device | None = None) -> Tensor:
    """hash(key, i) of the places 0..n-1, in 0..2³²−1."""
    i = torch.arange(n, device=device)
    low, high = key & WORD, key >> 32
    return mix(mix(i + low & WORD) + (high ^ i >> 32) & WORD)


def mix(h: Tensor) -> Tensor:
    """A number of 32 bits of which every bit depends on all bits of h."""
    h = (h ^ h >> 16) * 0x7FEB352D & WORD
    h = (h ^ h >> 15) * 0x846CA68B & WORD
    return h ^ h >> 16
