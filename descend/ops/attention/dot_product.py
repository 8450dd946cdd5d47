"""Scaled dot-product attention: every query takes a weighted mean of the values.

    S = Q Kᵀ / √d_k            how well query i fits key j
    A = softmax_j(S + M)       each row is a distribution; M is 0 or -inf
    O = A V

    Q (.., t, k)   K (.., s, k)   V (.., s, v)   S, A (.., t, s)   O (.., t, v)

Any similarity s(q, k) will do in place of the scaled product (VOM 8.3): `soft_attention`. Equal scores give the mean of
the values; scores multiplied by a growing factor give the value of the best key alone, `hard_attention` (DLN).

This is the form to read and to check by hand: it returns A. `nn.attention.multi_head` is the fast form, proven equal.
A mask says True where a query may look. The books also write it as M with 0 and -inf: `additive` makes that.

Errata, and the form taken here: padding masks KEYS only (MF-B.72 masks queries too, whose rows become 0/0); a row that
may look nowhere, such as that of a text of padding alone, is 0, forward and backward, in every form; the causal
mask lets position i see j ≤ i (S940-DLD.71 prints it reversed); attention is not homogeneous in X (VOM 9.8 says it is).

Systems: scaled-dot-product-attention, unscaled-self-attention, causal-mask, padding-mask, qkv-soft-attention
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def scores(q: Tensor, k: Tensor) -> Tensor:
    """S = Q Kᵀ / √d_k. With unit-variance entries q·k has variance d_k, so S has variance 1."""
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """O = softmax(Q Kᵀ / √d_k + M) V, and the weights A."""
    return weigh(scores(q, k), v, mask)


def unscaled_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """O = softmax(Q Kᵀ + M) V, and the weights A; with Q = K = V = X the parameter-free self-attention."""
    return weigh(q @ k.transpose(-2, -1), v, mask)


def soft_attention(
    q: Tensor, k: Tensor, v: Tensor, score: Callable[[Tensor, Tensor], Tensor], mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """O = softmax(s(Q, K) + M) V, and the weights A, for any similarity s: (.., t, k), (.., s, k) -> (.., t, s)."""
    return weigh(score(q, k), v, mask)


def hard_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """o_i = v_j with j = argmax_j q_i·k_j: look-up of the best key, which the softmax generalises."""
    best = (q @ k.transpose(-2, -1)).argmax(dim=-1)
    return v.gather(-2, best[..., None].expand(*best.shape, v.shape[-1]))


def weigh(s: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """O = softmax(S + M) V for any scores S, and the weights A; a query that may look nowhere has A = 0 and O = 0."""
    if mask is None:
        a = s.softmax(dim=-1)
    else:
        nowhere = ~mask.any(dim=-1, keepdim=True)
        a = (s + additive(mask | nowhere, s.dtype)).softmax(dim=-1).masked_fill(nowhere, 0)
    return a @ v, a


def additive(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """M: 0 where the query may look, -inf where it may not."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -math.inf)


def causal_mask(t: int, s: int | None = None) -> Tensor:
    """(t, s): query i sees key j when j ≤ i; with s > t the queries are the last t of s positions (a cache)."""
    s = t if s is None else s
    return torch.ones(t, s, dtype=torch.bool).tril(diagonal=s - t)


def padding_mask(lengths: Tensor, s: int) -> Tensor:
    """(b, 1, 1, s): True for the first `lengths[b]` keys of each sequence, the same for every head and query."""
    return (torch.arange(s, device=lengths.device) < lengths[:, None])[:, None, None, :]
