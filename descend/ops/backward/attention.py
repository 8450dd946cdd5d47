"""Backward pass of attention, written out: adjoints of Q, K, V, of the projections and of X, from the output's.

    S = Q Kᵀ / √d_k,   A = softmax_j(S + M),   H = A V            G = dL/dH
    dV = Aᵀ G          dA = G Vᵀ
    dS = A · (dA − rowsum(dA · A))          each row sums to 0; masked entries have A = 0, so dS = 0
    dQ = (dS / √d_k) K         dK = (dS / √d_k)ᵀ Q
    dW_Q = X_qᵀ dQ,  dW_K = X_kᵀ dK,  dW_V = X_kᵀ dV              X_q = X_k for self-attention
    dX_q = dQ W_Qᵀ             dX_k = dK W_Kᵀ + dV W_Vᵀ            self-attention adds the two

Errata. MF 21.3 prints a set of which no single layout makes all true: dV = G A and dA = Gᵀ V belong to head = V Aᵀ with
features x tokens, the column softmax to queries in columns, dQ ∝ dE K to tokens x features. Its example has T = d_k,
which hides that E = Q Kᵀ is then d_k x d_k. Here everything is tokens x features. VOM 12.4.6 calls the scaled and the
unscaled scores both S: step 4 needs the gradient of the unscaled ones, which is dS/√d_k.

Systems: attention-backward
"""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from descend.ops.attention.dot_product import attention
from descend.ops.backward.layers import linear_backward, softmax_backward


class Adjoints(NamedTuple):
    """Of one attention: `s` is that of the scaled scores, the input of the softmax."""

    q: Tensor
    k: Tensor
    v: Tensor
    a: Tensor
    s: Tensor


def attention_backward(q: Tensor, k: Tensor, v: Tensor, a: Tensor, g: Tensor) -> Adjoints:
    """From the forward pass's A (.., t, s) and from G (.., t, v): q (.., t, k), k (.., s, k), v (.., s, v)."""
    a_bar = g @ v.transpose(-2, -1)
    s_bar = softmax_backward(a, a_bar)
    unscaled = s_bar / math.sqrt(q.shape[-1])
    return Adjoints(unscaled @ k, unscaled.transpose(-2, -1) @ q, a.transpose(-2, -1) @ g, a_bar, s_bar)


def split(x: Tensor, heads: int) -> Tensor:
    """(.., t, h k) -> (.., h, t, k)"""
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def merge(x: Tensor) -> Tensor:
    """(.., h, t, k) -> (.., t, h k), the adjoint of `split` and its inverse."""
    return x.transpose(-3, -2).flatten(-2)


class Kept(NamedTuple):
    """What the forward pass of multi-head attention keeps for the backward pass."""

    x_q: Tensor
    x_k: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    a: Tensor
    h: Tensor


Projections = tuple[Tensor, Tensor, Tensor, Tensor]
"""W_Q, W_K, W_V, W_O, each (d, d), applied from the right."""


def multi_head(x_q: Tensor, x_k: Tensor, w: Projections, heads: int, mask: Tensor | None = None) -> tuple[Tensor, Kept]:
    """concat_h(softmax(Q_h K_hᵀ/√d_k + M) V_h) W_O: queries of x_q (.., t, d), keys and values of x_k (.., s, d)."""
    w_q, w_k, w_v, w_o = w
    q, k, v = split(x_q @ w_q, heads), split(x_k @ w_k, heads), split(x_k @ w_v, heads)
    out, a = attention(q, k, v, mask)
    h = merge(out)
    return h @ w_o, Kept(x_q, x_k, q, k, v, a, h)


def multi_head_backward(kept: Kept, w: Projections, g: Tensor) -> tuple[Tensor, Tensor, Projections]:
    """dX_q, dX_k and the gradients of the four projections; for self-attention the caller adds the first two."""
    w_q, w_k, w_v, w_o = w
    d_h, d_o, _ = linear_backward(kept.h, w_o, g)
    found = attention_backward(kept.q, kept.k, kept.v, kept.a, split(d_h, kept.q.shape[-3]))
    from_q, d_q, _ = linear_backward(kept.x_q, w_q, merge(found.q))
    from_k, d_k, _ = linear_backward(kept.x_k, w_k, merge(found.k))
    from_v, d_v, _ = linear_backward(kept.x_k, w_v, merge(found.v))
    return from_q, from_k + from_v, (d_q, d_k, d_v, d_o)
