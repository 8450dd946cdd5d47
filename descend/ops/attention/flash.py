"""FlashAttention: exact attention in tiles, without the n × n matrix of scores.

    forward, for a tile of queries, over tiles of keys j        m, l: running maximum and sum of each query
        S  = Q K_jᵀ / √d                                        (r, c): the only scores there ever are
        m' = max(m, max S),   P = e^{S − m'},   a = e^{m − m'}
        l  ← a l + Σ P,       O ← a O + P V_j,   m ← m'
        at the end  O ← O / l,   L = m + log l                  L is kept: the log of the softmax's denominator

    backward, the same tiles once more, from Q, K, V, O, ∂O and L alone          D = Σ_v ∂O ⊙ O, one number a query
        P   = e^{S − L}                                         computed again, not stored
        ∂V_j += Pᵀ ∂O,   ∂S = P ⊙ (∂O V_jᵀ − D)
        ∂Q  += ∂S K_j / √d,   ∂K_j += ∂Sᵀ Q / √d

Memory beside inputs and outputs is a tile of r × c scores and a few numbers a query: O(n) instead of O(n²). The work is
that of full attention, and the scores a second time on the way back. Tiles of any size, the last may be ragged. With
`causal` the last query meets the last key; tiles of later keys are left out, which halves the work. A query that may
look nowhere gets 0. The books' "2 to 4 times faster" is of GPUs, whose fast memory holds a tile. This is the form to
read; `F.scaled_dot_product_attention` is the fast one, and on a CPU works in the same way.

Systems: flash-attention
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

TILE = 64
NOTHING = -math.inf


class Running(NamedTuple):
    """Of some queries: what was found in the keys so far."""

    m: Tensor
    """The largest score (.., r, 1)."""
    l: Tensor  # noqa: E741
    """Σ e^{s − m} (.., r, 1)"""
    o: Tensor
    """Σ e^{s − m} v (.., r, v)"""


def begin(q: Tensor, values: int) -> Running:
    """Before the first key."""
    column = q.new_full((*q.shape[:-1], 1), NOTHING)
    return Running(column, torch.zeros_like(column), q.new_zeros(*q.shape[:-1], values))


def add_tile(found: Running, s: Tensor, v: Tensor) -> Running:
    """With the scores (.., r, c) and values (.., c, v) of some more keys."""
    m = torch.maximum(found.m, s.amax(-1, keepdim=True))
    finite = m.masked_fill(m == NOTHING, 0)  # a query that has met no key that it may look at
    p, a = (s - finite).exp_(), (found.m - finite).exp()
    return Running(m, a * found.l + p.sum(-1, keepdim=True), a * found.o + p @ v)


def finish(found: Running) -> tuple[Tensor, Tensor]:
    """O (.., r, v) and L (.., r, 1); of a query that may look nowhere 0 and ∞, so that its P on the way back is 0."""
    nowhere = found.l == 0
    o = found.o / found.l.masked_fill(nowhere, 1)
    return o, torch.where(nowhere, torch.inf, found.m + found.l.log())


def tiles(length: int, size: int) -> Iterator[slice]:
    """0 .. length in pieces of `size`, the last one perhaps shorter."""
    return (slice(i, min(i + size, length)) for i in range(0, length, size))


class Look(NamedTuple):
    """Who may look where, told for one tile at a time."""

    t: int
    s: int
    causal: bool
    mask: Tensor | None
    """True where a query may look (.., t or 1, s)."""

    def is_out(self, rows: slice, columns: slice) -> bool:
        """Whether all these keys are later than all these queries."""
        return self.causal and columns.start > rows.stop - 1 + self.s - self.t

    def score(self, q: Tensor, k: Tensor, rows: slice, columns: slice, scale: float) -> Tensor:
        """S of a tile (.., r, c), −∞ where it must not be looked at."""
        s = scale * (q[..., rows, :] @ k[..., columns, :].mT)
        if self.causal and columns.stop - 1 > rows.start + self.s - self.t:
            i = torch.arange(rows.start, rows.stop, device=q.device)[:, None] + self.s - self.t
            s = s.masked_fill(torch.arange(columns.start, columns.stop, device=q.device) > i, NOTHING)
        if self.mask is None:
            return s
        seen = self.mask[..., columns] if self.mask.shape[-2] == 1 else self.mask[..., rows, columns]
        return s.masked_fill(~seen, NOTHING)


class _Flash(torch.autograd.Function):
    """Both passes, tile by tile."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, look: Look, size: tuple[int, int], scale: float) -> Tensor:
        o, log_sum = q.new_empty(*q.shape[:-1], v.shape[-1]), q.new_empty(*q.shape[:-1], 1)
        for rows in tiles(look.t, size[0]):
            found = begin(q[..., rows, :], v.shape[-1])
            for columns in tiles(look.s, size[1]):
                if not look.is_out(rows, columns):
                    found = add_tile(found, look.score(q, k, rows, columns, scale), v[..., columns, :])
            o[..., rows, :], log_sum[..., rows, :] = finish(found)
        ctx.save_for_backward(q, k, v, o, log_sum)
        ctx.look, ctx.size, ctx.scale = look, size, scale
        return o

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, o, log_sum = ctx.saved_tensors
        look, size, scale, d_o = ctx.look, ctx.size, ctx.scale, grads[0]
        d_q, d_k, d_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        mean = (d_o * o).sum(-1, keepdim=True)  # D
        for rows in tiles(look.t, size[0]):
            for columns in tiles(look.s, size[1]):
                if look.is_out(rows, columns):
                    continue
                p = (look.score(q, k, rows, columns, scale) - log_sum[..., rows, :]).exp_()
                d_v[..., columns, :] += p.mT @ d_o[..., rows, :]
                d_s = p * (d_o[..., rows, :] @ v[..., columns, :].mT - mean[..., rows, :])
                d_q[..., rows, :] += scale * (d_s @ k[..., columns, :])
                d_k[..., columns, :] += scale * (d_s.mT @ q[..., rows, :])
        return d_q, d_k, d_v, None, None, None


def flash_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    mask: Tensor | None = None,
    size: tuple[int, int] = (TILE, TILE),
) -> Tensor:
    """softmax(Q Kᵀ / √d + M) V: q (.., t, d), k (.., s, d), v (.., s, v) -> (.., t, v), in tiles of `size` queries and
    keys. `mask` is True where a query may look, (.., t or 1, s)."""
    if min(size) < 1:
        raise ValueError(f"tiles of {size[0]} × {size[1]}; both must be at least 1")
    look = Look(q.shape[-2], k.shape[-2], causal, mask)
    found: Tensor = _Flash.apply(q, k, v, look, size, 1 / math.sqrt(q.shape[-1]))
    return found
