"""The key-value cache: what decoding remembers, so that each new token costs one position instead of all.

    K ← [K; x W^K],  V ← [V; x W^V]        then attention(x W^Q, K, V)

Static buffers of the final length: no reallocation while tokens arrive. Prompts of different lengths are padded on the
left; `pad[b]` counts the padding, whose keys no query sees.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Cache:
    """Keys and values of every layer for `length` positions; `used` of them are filled."""

    def __init__(
        self, depth: int, batch: int, heads: int, length: int, head_size: int, pad: Tensor | None = None
    ):
        self.length, self.used, self.pad = length, 0, pad
        self.layers = [LayerCache(self, (batch, heads, length, head_size)) for _ in range(depth)]

    def positions(self, t: int, device: torch.device) -> Tensor:
        """Positions of the next t tokens: (t,), or (b, t) when prompts were padded."""
        positions = torch.arange(self.used, self.used + t, device=device)
        return positions if self.pad is None else (positions - self.pad[:, None]).clamp(min=0)

    def advance(self, t: int) -> None:
        self.used += t

    def mask(self, t: int, device: torch.device) -> Tensor | None:
        """Which of the used + t keys the next t queries see; None when they see all of them."""
        s = self.used + t
        if self.pad is None and t == 1:
            return None
        seen = torch.ones(t, s, dtype=torch.bool, device=device).tril(diagonal=self.used)
        if self.pad is None:
            return seen
        real = (torch.arange(s, device=device) >= self.pad[:, None])[:, None, None, :]
        # A padded query sees itself: a row without any key would be NaN.
        return (seen & real) | torch.eye(t, s, dtype=torch.bool, device=device).roll(self.used, 1)

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order (beam search)."""
        for layer in self.layers:
            layer.k, layer.v = layer.k[rows], layer.v[rows]
        self.pad = None if self.pad is None else self.pad[rows]


class LayerCache:
    """One layer's share of the cache."""

    def __init__(self, cache: Cache, shape: tuple[int, int, int, int]):
        self.cache = cache
        self.k, self.v = torch.zeros(shape), torch.zeros(shape)

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Store the new keys and values (b, h, t, k); return all so far, and the mask of the new queries."""
        start, t = self.cache.used, k.shape[2]
        end = start + t
        self.k[:, :, start:end], self.v[:, :, start:end] = k, v
        return self.k[:, :, :end], self.v[:, :, :end], self.cache.mask(t, k.device)
