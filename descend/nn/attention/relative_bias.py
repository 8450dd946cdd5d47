"""Relative position bias: a learned number for how far a key is from the query, added to the score.

    S_ij = q_iᵀ k_j / √d_k + B_ij        B_ij = β[bucket(j − i)], one β a head

    clipped    bucket(o) = min(max(o, −k), k) + k                       2k + 1 numbers per head (VOM 11.4, DLN)
    T5         near offsets have a bucket each, far ones share: N buckets for one side, exact up to N/2, then
               N/2 + ⌊(N/2) log(n / (N/2)) / log(D / (N/2))⌋ for distance n, the last bucket from D on
               encoder: N = 16 for keys before the query and 16 for keys after it; decoder: 32 for keys before it

B depends on j − i only, so it is the same for a text moved as a whole, and any length has one. Nothing is added to the
embeddings. DLN and MF divide by √d_k; the released T5 does not (`scale=1.0` in its attention). MF writes a table per
layer; T5 has one per stack, shared by its layers.

Erratum: DLN says that a new token changes the distances of all others, so that caching fails. Offsets among the tokens
that are there stay as they were; a new query needs one new row of B, and the stored keys and values are untouched.

Systems: relative-position-bias
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def offsets(t: int, s: int, device: torch.device | None = None) -> Tensor:
    """j − i (t, s) for t queries that are the last of s positions."""
    return torch.arange(s, device=device) - torch.arange(s - t, s, device=device)[:, None]


def clipped_bucket(offset: Tensor, farthest: int) -> Tensor:
    """0..2k: every offset from −k to k has its own, beyond them all are alike."""
    return offset.clamp(-farthest, farthest) + farthest


def distance_bucket(n: Tensor, buckets: int, farthest: int) -> Tensor:
    """0..buckets − 1 for distances n ≥ 0: half of them exact, half logarithmic up to `farthest`."""
    exact = buckets // 2
    far = (n.clamp(min=1).float() / exact).log() / math.log(farthest / exact) * (buckets - exact)
    return torch.where(n < exact, n, (exact + far.clamp(min=0).long()).clamp(max=buckets - 1))


def one_sided_bucket(offset: Tensor, buckets: int, farthest: int) -> Tensor:
    """The decoder's: all for keys before the query, which has bucket 0; keys after it are masked anyway."""
    return distance_bucket((-offset).clamp(min=0), buckets, farthest)


def two_sided_bucket(offset: Tensor, buckets: int, farthest: int) -> Tensor:
    """The encoder's: the first half for keys before the query and itself, the second for keys after it."""
    half = buckets // 2
    return distance_bucket(offset.abs(), half, farthest) + half * (offset > 0)


class ClippedRelativeBias(nn.Module):
    """B (1, h, t, s) with one number for each offset from −k to k: 2k + 1 a head."""

    def __init__(self, heads: int, farthest: int):
        super().__init__()
        self.farthest = farthest
        self.table = nn.Embedding(2 * farthest + 1, heads)

    def forward(self, t: int, s: int) -> Tensor:
        """For t queries that are the last of s positions: with a cache t is 1, one new row."""
        return spread(self.table, clipped_bucket(offsets(t, s, self.table.weight.device), self.farthest))


class RelativeBias(nn.Module):
    """B (1, h, t, s) of the T5 encoder: `buckets` numbers per head, both sides."""

    def __init__(self, heads: int, buckets: int = 32, farthest: int = 128):
        super().__init__()
        if buckets < 4 or farthest <= buckets // 2:
            raise ValueError(f"{buckets} buckets up to distance {farthest}: at least 4, and farther than half of them")
        self.buckets, self.farthest = buckets, farthest
        self.table = nn.Embedding(buckets, heads)

    def bucket(self, offset: Tensor) -> Tensor:
        return two_sided_bucket(offset, self.buckets, self.farthest)

    def forward(self, t: int, s: int) -> Tensor:
        """As above."""
        return spread(self.table, self.bucket(offsets(t, s, self.table.weight.device)))


class CausalRelativeBias(RelativeBias):
    """B of the T5 decoder: keys before the query only."""

    def bucket(self, offset: Tensor) -> Tensor:
        return one_sided_bucket(offset, self.buckets, self.farthest)


def spread(table: nn.Embedding, bucket: Tensor) -> Tensor:
    """β[bucket] of every head: (t, s) -> (1, h, t, s)."""
    found: Tensor = table(bucket)
    return found.permute(2, 0, 1)[None]
