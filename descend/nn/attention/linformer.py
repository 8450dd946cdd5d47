"""Linformer: keys and values of t positions are mixed down to p, so that the scores are t × p.

    K' = E K,   V' = F V,   E, F (p × t)            y = softmax(Q K'ᵀ / √d) V'

MF names it and gives no formula; this is that of the paper, with one E and one F for all heads of a layer. With p = t
and E = F = I it is full attention. A text shorter than the context uses the first columns; padding is set to 0 before
the mixing. Since E mixes all positions, there is no causal form.

Systems: linformer
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.nn.attention.multi_head import attend
from descend.nn.attention.self_attention import SelfAttention, refuse_causal


def linformer_attend(q: Tensor, k: Tensor, v: Tensor, e: Tensor, f: Tensor, dropout: float = 0.0) -> Tensor:
    """q, k, v (b, t, h, k), e, f (p, t) -> (b, t, h, k)"""
    k, v = (torch.einsum("pt,bthk->bphk", mix, x) for mix, x in ((e, k), (f, v)))
    return attend(q, k, v, dropout=dropout)


class LinformerAttention(SelfAttention):
    """Attention to `projected` mixtures of at most `context` keys."""

    def __init__(self, width: int, heads: int, context: int, projected: int, dropout: float = 0.0):
        super().__init__(width, heads, dropout=dropout)
        self.e, self.f = (nn.Parameter(torch.randn(projected, context) * projected**-0.5) for _ in range(2))

    def mix(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, causal: bool) -> Tensor:
        refuse_causal(causal, "Linformer")
        t = q.shape[1]
        if t > self.e.shape[1]:
            raise ValueError(f"{t} tokens, but the projection is for {self.e.shape[1]} (its context)")
        if keep is not None:
            k, v = (x * keep[..., None, None] for x in (k, v))
        return linformer_attend(q, k, v, self.e[:, :t], self.f[:, :t], self.rate)
