"""Sliding window attention in memory that grows with t alone: chunks of queries meet three chunks of keys.

    N(i) = {j : |i − j| ≤ w}                                       w is a radius: 2w + 1 keys, reach L w after L layers
    N(i) = {i − w d, .., i, .., i + w d}                           dilated: tokens of one remainder mod d, then as above
    N(i) = {1..t} for i in G, else N_local(i) ∪ G                  Longformer: global tokens see all, all see them

A chunk has c ≥ w tokens, so the keys of its window lie in it and its two neighbours: t · 3c scores instead of t².
The equations are `descend.ops.attention.patterns`; each function here equals full attention under that mask.

MF gives the global rows the projections of the local ones (`GlobalWindow`). The released Longformer has three matrices
of their own for them (`SeparateGlobalWindow`).

Systems: sliding-window-attention, longformer
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.nn.attention.multi_head import attend
from descend.nn.attention.self_attention import SelfAttention, refuse_causal

CHUNK = 64  # tokens at least: shorter chunks cost more than the scores they save


class Everywhere(NamedTuple):
    """Keys that every query sees: k, v (b, g, h, k), and which of them are real (b, g)."""

    k: Tensor
    v: Tensor
    real: Tensor


def chunk(x: Tensor, size: int) -> Tensor:
    """(b, t, ..) -> (b, ⌈t/size⌉, size, ..), filled up with zeros."""
    short = -x.shape[1] % size
    x = F.pad(x, (0, 0) * (x.dim() - 2) + (0, short)) if short else x
    return x.unflatten(1, (-1, size))


def with_neighbours(x: Tensor) -> Tensor:
    """Each chunk between its neighbours: (b, n, c, ..) -> (b, n, 3c, ..); a single one stays alone."""
    if x.shape[1] == 1:
        return x
    nothing = torch.zeros_like(x[:, :1])
    x = torch.cat([nothing, x, nothing], dim=1)
    return torch.cat([x[:, :-2], x[:, 1:-1], x[:, 2:]], dim=2)


def window_mask(keep: Tensor, radius: int, size: int) -> Tensor:
    """(b, n, c, 3c): |i − j| ≤ w, and j is kept. Every query sees itself, so that no row is empty."""
    near = with_neighbours(chunk(keep, size))
    aside = (near.shape[2] - size) // 2
    apart = torch.arange(size, device=keep.device)[:, None] - torch.arange(-aside, size + aside, device=keep.device)
    return (apart.abs() <= radius) & near[:, :, None] | (apart == 0)


def window_attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    radius: int,
    keep: Tensor | None = None,
    also: Everywhere | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Attention to the keys within `radius`, and to those in `also`: (b, t, h, k) three times -> (b, t, h, k).

    `keep` (b, t) is False for keys that nobody sees in a window: padding, and tokens that are in `also`.
    """
    b, t = q.shape[:2]
    size = max(radius, min(CHUNK, t))
    keep = q.new_ones(b, t, dtype=torch.bool) if keep is None else keep
    mask = window_mask(keep, radius, size)
    n = mask.shape[1]
    k, v = (with_neighbours(chunk(x, size)) for x in (k, v))
    if also is not None:
        k, v = (torch.cat([x[:, None].expand(-1, n, -1, -1, -1), y], dim=2) for x, y in ((also.k, k), (also.v, v)))
        mask = torch.cat([also.real[:, None, None].expand(-1, n, size, -1), mask], dim=-1)
    q, k, v = (x.flatten(0, 1) for x in (chunk(q, size), k, v))
    y = attend(q, k, v, mask=mask.flatten(0, 1)[:, None], dropout=dropout)
    return y.unflatten(0, (b, n)).flatten(1, 2)[:, :t]


def dilated_attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    radius: int,
    stride: int,
    keep: Tensor | None = None,
    also: Everywhere | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Attention to every `stride`-th key, `radius` of them on each side, and to those in `also`: as `window_attend`."""
    b, t = q.shape[:2]
    keep = q.new_ones(b, t, dtype=torch.bool) if keep is None else keep
    q, k, v, keep = (chunk(x, stride).transpose(1, 2).flatten(0, 1) for x in (q, k, v, keep))
    if also is not None:
        also = Everywhere(*(x.repeat_interleave(stride, dim=0) for x in also))  # the same for every remainder
    y = window_attend(q, k, v, radius, keep, also, dropout)
    return y.unflatten(0, (b, stride)).transpose(1, 2).flatten(1, 2)[:, :t]


class WindowAttention(SelfAttention):
    """Each token sees `radius` tokens on each side, or with a stride every stride-th of them."""

    def __init__(self, width: int, heads: int, radius: int, stride: int = 1, dropout: float = 0.0):
        super().__init__(width, heads, dropout=dropout)
        if radius < 0 or stride < 1:
            raise ValueError(f"radius {radius} and stride {stride}; a radius is at least 0, a stride at least 1")
        self.radius, self.stride = radius, stride

    def mix(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, causal: bool) -> Tensor:
        refuse_causal(causal, "a sliding window")
        return dilated_attend(q, k, v, self.radius, self.stride, keep, dropout=self.rate)


class GlobalWindow(SelfAttention):
    """A window, dilated with a stride, and global tokens, with the same projections for both (MF 35.5).

    `mask` (b, 1, 1, t) is 0 for padding, 1 for a token, 2 for a global token.
    """

    def __init__(self, width: int, heads: int, radius: int, dropout: float = 0.0, stride: int = 1):
        super().__init__(width, heads, dropout=dropout)
        if radius < 0 or stride < 1:
            raise ValueError(f"radius {radius} and stride {stride}; a radius is at least 0, a stride at least 1")
        self.radius, self.stride = radius, stride

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:  # type: ignore[override]
        refuse_causal(causal, "a sliding window")
        role = x.new_ones(x.shape[:2], dtype=torch.long) if mask is None else mask[:, 0, 0].long()
        q, k, v = (part(x).unflatten(-1, (self.heads, -1)) for part in (self.q, self.k, self.v))
        places, real = global_places(role == 2)
        if not places.shape[1]:
            y = dilated_attend(q, k, v, self.radius, self.stride, role == 1, dropout=self.rate)
            return self.out(y.flatten(-2))
        row = torch.arange(len(x), device=x.device)[:, None]
        also = Everywhere(k[row, places], v[row, places], real)
        y = dilated_attend(q, k, v, self.radius, self.stride, role == 1, also, self.rate)
        q, k, v = self.for_global(x, x[row, places])
        found = attend(q, k, v, mask=(role > 0)[:, None, None], dropout=self.rate)
        y = y.index_put((row.expand_as(places)[real], places[real]), found[real])
        return self.out(y.flatten(-2))

    def for_global(self, x: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of the global tokens (b, g, h, k), keys and values of all (b, t, h, k)."""
        return self.project((self.q(chosen), self.k(x), self.v(x)))

    def project(self, parts: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in parts)
        return q, k, v


class SeparateGlobalWindow(GlobalWindow):
    """A window and global tokens whose own rows have projections of their own (the released Longformer)."""

    def __init__(self, width: int, heads: int, radius: int, dropout: float = 0.0):
        super().__init__(width, heads, radius, dropout)
        self.q_global, self.k_global, self.v_global = (nn.Linear(width, width) for _ in range(3))

    def for_global(self, x: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.project((self.q_global(chosen), self.k_global(x), self.v_global(x)))


def global_places(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Where each text's global tokens stand (b, g), g of the text with most, and which entries are real (b, g)."""
    counts = chosen.sum(1)
    places = chosen.int().argsort(dim=1, descending=True, stable=True)[:, : int(counts.max())]
    return places, torch.arange(places.shape[1], device=chosen.device) < counts[:, None]
