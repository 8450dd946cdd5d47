"""Choosing some of many at random, by random numbers that come with the batch.

    keys_i = hash(u, i) in 0..1,  i = 0 .. n − 1        from one number u of each image, which the stream draws
    chosen: of those that may be, the ones with the smallest keys; at most `most`

A key depends on its image's own u and its place alone, so that splitting a batch, or resuming, chooses the same. The
hash is a multiplication and xor-shift mixer of 32 bits (Mueller's constants); neighbouring places have unrelated keys.
It is a permutation, so no two places of an image have the same key, and there are no ties.

Systems: region-proposal-network
"""

from __future__ import annotations

import torch
from torch import Tensor

WORD = 0xFFFFFFFF
MIX = 0x45D9F3B


def draw_keys(u: Tensor, count: int) -> Tensor:
    """`count` numbers in 0..1 from each u (b) in 0..1 -> (b, count), no two of a row equal."""
    seed = (u.double() * WORD).long()[:, None]
    x = mix(seed + 0x9E3779B9) + torch.arange(count, device=u.device)
    return mix(mix(x & WORD)).double() / (WORD + 1)


def mix(x: Tensor) -> Tensor:
    """A permutation of the numbers below 2^32 that looks random."""
    x = ((x >> 16) ^ x) * MIX & WORD
    x = ((x >> 16) ^ x) * MIX & WORD
    return (x >> 16) ^ x


def choose(may: Tensor, keys: Tensor, most: Tensor | int) -> Tensor:
    """Of those that `may` (b, n) be, the `most` (b, 1) with the smallest keys (b, n), as a mask (b, n)."""
    count = min(int(torch.as_tensor(most).max()), may.shape[1])
    place = torch.where(may, keys, 2.0).topk(count, dim=1, largest=False).indices
    among = (torch.arange(count, device=may.device) < most).expand_as(place)
    return may & torch.zeros_like(may).scatter(1, place, among)


def choose_balanced(
    positive: Tensor, negative: Tensor, keys: Tensor, count: int, share: float
) -> tuple[Tensor, Tensor]:
    """At most `count` of an image, of which at most a share is positive; negatives fill up. Masks (b, n) each."""
    first = choose(positive, keys, int(count * share))
    return first, choose(negative, keys, count - first.sum(dim=1, keepdim=True))
