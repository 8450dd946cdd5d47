"""The key-value cache: what decoding remembers, so that each new token costs one position instead of all.

    K ← [K; x W^K],  V ← [V; x W^V]        then attention(x W^Q, K, V)

A key or value never depends on later tokens (causality), so it is computed once and kept: T tokens cost Σ t = O(T²)
query-key products instead of Σ t² = O(T³). Inference only; per layer [batch, heads, length, head size].

Static buffers of the final length: no reallocation while tokens arrive. Prompts of different lengths are padded on the
left; `pad[b]` counts the padding, whose keys no query sees.

Systems: kv-cache
"""

from __future__ import annotations

import torch
from torch import Tensor


class Cache:
    """Keys and values of every layer for `length` positions; `used` of them are filled."""

    def __init__(
        self, depth: int, batch: int, heads: int, length: int, head_size: int, pad: Tensor | None, like: Tensor
    ):
        self.length, self.used, self.pad = length, 0, pad
        self.device = like.device
        self.layers = [LayerCache(self, like.new_zeros(2, batch, heads, length, head_size)) for _ in range(depth)]
        self.masked: tuple[int, int, Tensor | None] = (-1, -1, None)

    def positions(self, t: int) -> Tensor:
        """Positions of the next t tokens: (t,), or (b, t) when prompts were padded."""
        positions = torch.arange(self.used, self.used + t, device=self.device)
        return positions if self.pad is None else (positions - self.pad[:, None]).clamp(min=0)

    def advance(self, t: int) -> None:
        """The next t positions are filled, in every layer."""
        self.used += t

    def mask(self, t: int) -> Tensor | None:
        """Which of the used + t keys the next t queries see; None when they see all of them."""
        if self.pad is None and t == 1:
            return None
        if self.masked[:2] != (self.used, t):  # made once for all layers
            self.masked = (self.used, t, self.new_mask(t))
        return self.masked[2]

    def new_mask(self, t: int) -> Tensor:
        s = self.used + t
        seen = torch.ones(t, s, dtype=torch.bool, device=self.device).tril(diagonal=self.used)
        if self.pad is None:
            return seen
        real = (torch.arange(s, device=self.device) >= self.pad[:, None])[:, None, None, :]
        # A padded query sees itself: a row without any key would be NaN.
        return (seen & real) | torch.eye(t, s, dtype=torch.bool, device=self.device).roll(self.used, 1)

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order; a row may be taken more than once (beams)."""
        for layer in self.layers:
            layer.reorder(rows, self.used)
        self.pad = None if self.pad is None else self.pad[rows]
        self.masked = (-1, -1, None)


class LayerCache:
    """One layer's share of the cache: keys and values (2, b, h, length, k)."""

    def __init__(self, cache: Cache, kv: Tensor):
        self.cache, self.kv = cache, kv
        self.k, self.v = kv.unbind(0)

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Store the new keys and values (b, h, t, k); return all so far, and the mask of the new queries."""
        start, t = self.cache.used, k.shape[2]
        self.k.narrow(2, start, t).copy_(k)
        self.v.narrow(2, start, t).copy_(v)
        end = start + t
        return self.k.narrow(2, 0, end), self.v.narrow(2, 0, end), self.cache.mask(t)

    def reorder(self, rows: Tensor, used: int) -> None:
        """Only what is filled moves; the room behind it is kept when the number of rows is the same."""
        filled = self.kv[:, :, :, :used].index_select(1, rows)
        if len(rows) != self.kv.shape[1]:
            self.kv = self.kv.new_zeros(2, len(rows), *self.kv.shape[2:])
            self.k, self.v = self.kv.unbind(0)
        self.kv[:, :, :, :used] = filled
