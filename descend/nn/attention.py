"""Multi-head self-attention, the fast form: one matrix for Q, K and V, a fused kernel for the rest.

    head_i = attention(X W_i^Q, X W_i^K, X W_i^V)        i = 1..h,   d_k = d / h
    O = [head_1 .. head_h] W^O

Every head reads the whole vector; W^O mixes what they found. `descend.ops.attention` is the equation itself.
The projections have biases, as in DLN and the released GPT-2 and BERT (MF and VOM print none).

Systems: multi-head-attention, causal-mask
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from descend.native import training


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(b, t, h·k) -> (b, h, t, k)"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(b, h, t, k) -> (b, t, h·k)"""
    return x.transpose(1, 2).flatten(-2)


def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool, dropout: float = 0.0) -> Tensor:
    """softmax(Q Kᵀ / √k + M) V of every head: q (b, t, h, k) and k, v (b, s, h, k) give (b, t, h, k)."""
    if not dropout and training.usable(q):
        return training.attention(q, k, v, causal)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal).transpose(1, 2)


class CausalSelfAttention(nn.Module):
    """Multi-head attention of every position to itself and the positions before it."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of heads {heads}")
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(-3)  # (b, t, h, k)
        return self.out(attend(q, k, v, True, self.dropout if self.training else 0.0).flatten(-2))
