"""Sparse Transformer attention: causal, t √t scores instead of t²/2, computed without the others.

    strided   j ≤ i and (i − j < l or (i − j) mod l = 0)             the last l tokens and every l-th before
    fixed     j ≤ i and (⌊j/l⌋ = ⌊i/l⌋ or j mod l ≥ l − c)           i's own block and the last c tokens of each block

In rows of l tokens the first is a row with its predecessor, plus the column above: t (2l + t/l) scores, least at l ≈
√t. The paper gives the two parts to different heads or layers, or to one head together; here they are one softmax, as
S940 and VOM describe it. Two layers of either connect every j ≤ i. The masks are `ops.attention.patterns.strided` and
`fixed`.

Systems: sparse-transformer-attention
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from descend.nn.attention.self_attention import SelfAttention
from descend.nn.attention.sliding_window import chunk


def weigh_parts(parts: list[tuple[Tensor, Tensor]], size: int, dropout: float) -> list[Tensor]:
    """One softmax over several parts of a row: (scores, allowed) each, (b, h, n, l, ..); split again."""
    scores = [(s / math.sqrt(size)).masked_fill(~allowed, -math.inf) for s, allowed in parts]
    a = F.dropout(torch.cat(scores, dim=-1).softmax(dim=-1), dropout)
    return list(a.split([s.shape[-1] for s in scores], dim=-1))


def strided_attend(q: Tensor, k: Tensor, v: Tensor, stride: int, dropout: float = 0.0) -> Tensor:
    """The last `stride` tokens and every stride-th before: (b, t, h, k) three times -> (b, t, h, k)."""
    t, size = q.shape[1], q.shape[-1]
    q, k, v = (chunk(x, stride) for x in (q, k, v))  # (b, n, l, h, k)
    near_k, near_v = (torch.cat([F.pad(x, (0, 0) * 3 + (1, 0))[:, :-1], x], dim=2) for x in (k, v))
    row, at, place = (torch.arange(*x, device=q.device) for x in ((q.shape[1],), (stride,), (-stride, stride)))
    apart = at[:, None] - place
    near = (apart >= 0) & (apart < stride) & ((row > 0)[:, None, None] | (place >= 0))
    above = (row[:, None] > row)[:, None]
    a, c = weigh_parts(
        [
            (torch.einsum("bnihk,bnjhk->bhnij", q, near_k), near),
            (torch.einsum("bnihk,bmihk->bhnim", q, k), above),
        ],
        size,
        dropout,
    )
    y = torch.einsum("bhnij,bnjhk->bnihk", a, near_v) + torch.einsum("bhnim,bmihk->bnihk", c, v)
    return y.flatten(1, 2)[:, :t]


def fixed_attend(q: Tensor, k: Tensor, v: Tensor, stride: int, summaries: int = 1, dropout: float = 0.0) -> Tensor:
    """The own block of `stride` tokens and the last ones of each block before: (b, t, h, k) -> (b, t, h, k)."""
    t, size = q.shape[1], q.shape[-1]
    q, k, v = (chunk(x, stride) for x in (q, k, v))
    far_k, far_v = (x[:, :, -summaries:].flatten(1, 2) for x in (k, v))  # (b, n·c, h, k)
    row, at = torch.arange(q.shape[1], device=q.device), torch.arange(stride, device=q.device)
    before = (row[:, None] > row.repeat_interleave(summaries))[:, None]
    a, c = weigh_parts(
        [
            (torch.einsum("bnihk,bnjhk->bhnij", q, k), at[:, None] >= at),
            (torch.einsum("bnihk,bjhk->bhnij", q, far_k), before),
        ],
        size,
        dropout,
    )
    y = torch.einsum("bhnij,bnjhk->bnihk", a, v) + torch.einsum("bhnij,bjhk->bnihk", c, far_v)
    return y.flatten(1, 2)[:, :t]


def padding_at_the_end(keep: Tensor | None) -> None:
    """A causal pattern needs no key mask for padding behind the text; padding before it would shift the pattern."""
    if keep is not None and bool((keep[:, 1:] & ~keep[:, :-1]).any()):
        raise ValueError("padding stands before a token; pad at the end, causal patterns are counted from the start")


class StridedAttention(SelfAttention):
    """Causal: the last `stride` tokens and every stride-th before."""

    def __init__(self, width: int, heads: int, stride: int, dropout: float = 0.0):
        super().__init__(width, heads, dropout=dropout)
        if stride < 1:
            raise ValueError(f"stride {stride}; it is at least 1, best near the root of the length")
        self.stride = stride

    def mix(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, causal: bool) -> Tensor:
        padding_at_the_end(keep)
        return strided_attend(q, k, v, self.stride, self.rate)


class FixedAttention(SelfAttention):
    """Causal: the own block of `stride` tokens and the last `summaries` tokens of each block before."""

    def __init__(self, width: int, heads: int, stride: int, summaries: int = 1, dropout: float = 0.0):
        super().__init__(width, heads, dropout=dropout)
        if not 1 <= summaries <= stride:
            raise ValueError(f"{summaries} summaries of a block of {stride} tokens; give 1 to {stride}")
        self.stride, self.summaries = stride, summaries

    def mix(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, causal: bool) -> Tensor:
        padding_at_the_end(keep)
        return fixed_attend(q, k, v, self.stride, self.summaries, self.rate)
