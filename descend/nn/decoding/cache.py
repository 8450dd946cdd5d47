"""The key-value cache: what decoding remembers, so that each new token costs one position instead of all.

    K ← [K; x W^K],  V ← [V; x W^V]        then attention(x W^Q, K, V)

A key or value never depends on later tokens (causality), so it is computed once and kept: T tokens cost Σ t = O(T²)
query-key products instead of Σ t² = O(T³). For inference only.

Static buffers of the final length: no reallocation while tokens arrive. Prompts of different lengths are padded on the
left; `pad[b]` counts the padding, whose keys no query sees.

With a window of w keys the buffers roll: when they are full, the last w − 1 keys move to the front and the older ones
are gone. 2 w places are enough for texts of any length, read w tokens at a time, and a key moves once in w steps.

Systems: kv-cache, causal-sliding-window
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Layer(NamedTuple):
    """One layer's share for the next t tokens, after s - t others."""

    new: Tensor
    """(2, b, h, t, k): where their keys and values go"""
    k: Tensor
    """(b, h, s, k): all keys, the new ones last"""
    v: Tensor
    mask: Tensor | None
    """(b or 1, 1, t, s): 0 where a query may look and -inf where it may not; None: everywhere, or `causal`"""
    causal: bool
    """There are only the new tokens, and none is padding: each sees those up to itself"""

    def write_mask(self) -> Tensor | None:
        """The mask, also where it is causal."""
        t = self.new.shape[3]
        return self.new.new_full((1, 1, t, t), -math.inf).triu(1) if self.causal else self.mask


class Cache:
    """Keys and values (depth, 2, b, h, length, k) of every layer; `used` places are filled, `gone` tokens forgotten.

    A model whose keys and values are read from one vector has (depth, 1, b, h, length, k): `Layer.k` and `.v` are it.
    """

    def __init__(self, kv: Tensor, pad: Tensor | None = None, window: int | None = None):
        self.kv, self.pad, self.window = kv, pad, window
        self.used = self.gone = 0

    def positions(self, t: int) -> Tensor:
        """Positions of the next t tokens: (t,), or (b, t) when prompts were padded."""
        start = self.gone + self.used
        positions = torch.arange(start, start + t, device=self.kv.device)
        return positions if self.pad is None else (positions - self.pad[:, None]).clamp(min=0)

    def take(self, t: int) -> int:
        """The next t places; returns the first."""
        self.roll(t)
        self.used += t
        return self.used - t

    def roll(self, t: int) -> None:
        """Forget what the next t tokens do not see, if there is no room for them otherwise."""
        if self.window is None or self.used + t <= self.kv.shape[4]:
            return
        kept = min(self.window - 1, self.used)
        self.kv[:, :, :, :, :kept] = self.kv[:, :, :, :, self.used - kept : self.used].clone()
        self.gone, self.used = self.gone + self.used - kept, kept

    def first(self) -> Tensor | None:
        """The first place that the token taken last sees, for each row (b,); None: from the beginning."""
        if self.window is None:
            return self.pad
        begin = max(0, self.used - self.window)
        if self.pad is None:
            return torch.full(self.kv.shape[2:3], begin, device=self.kv.device) if begin else None
        return (self.pad - self.gone).clamp(min=begin)

    def extend(self, t: int) -> list[Layer]:
        """Room for t more tokens, in every layer."""
        self.roll(t)
        causal = self.pad is None and self.used == 0 and 1 < t <= (self.window or t)
        mask, parts = None if causal else self.mask(t), self.kv.shape[1]
        new = self.kv.narrow(4, self.take(t), t).unbind(0)
        filled = self.kv.narrow(4, 0, self.used).flatten(0, 1).unbind(0)  # k, v of the first layer, of the second, …
        both = zip(new, filled[::parts], filled[parts - 1 :: parts], strict=True)
        return [Layer(room, k, v, mask, causal) for room, k, v in both]

    def mask(self, t: int) -> Tensor | None:
        """Which of the used + t keys the next t queries see."""
        s, device = self.used + t, self.kv.device
        rolled = self.window is not None and s > self.window
        if self.pad is None and t == 1 and not rolled:
            return None
        seen = torch.ones(1, 1, t, s, dtype=torch.bool, device=device).tril(diagonal=self.used)
        if self.window is not None and rolled:
            seen = seen.triu(diagonal=self.used - self.window + 1)
        if self.pad is not None:
            real = (torch.arange(s, device=device) >= (self.pad - self.gone)[:, None])[:, None, None, :]
            # A padded query sees itself: a row without any key would be NaN.
            seen = (seen & real) | torch.eye(t, s, dtype=torch.bool, device=device).roll(self.used, 1)
        return self.kv.new_zeros(seen.shape).masked_fill_(~seen, -math.inf)

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order; a row may be taken more than once (beams)."""
        filled = self.kv[:, :, :, :, : self.used].index_select(2, rows)
        if len(rows) != self.kv.shape[2]:
            self.kv = self.kv.new_zeros(*self.kv.shape[:2], len(rows), *self.kv.shape[3:])
        self.kv[:, :, :, :, : self.used] = filled  # only what is filled moves
        self.pad = None if self.pad is None else self.pad[rows]
