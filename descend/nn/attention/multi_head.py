"""Multi-head self-attention, the fast form: one matrix for Q, K and V, a fused kernel for the rest.

    head_i = attention(X W_i^Q, X W_i^K, X W_i^V)        i = 1..h,   d_k = d / h
    O = [head_1 .. head_h] W^O

Every head reads the whole vector; W^O mixes what they found. `ops.attention.dot_product` is the equation itself.
The projections have biases, as in DLN and the released GPT-2 and BERT (MF and VOM print none).

Systems: multi-head-attention, causal-mask, grouped-query-attention, multi-query-attention, cross-attention
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.native import training
from descend.nn.attention.rotary import rotate


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(b, t, h·k) -> (b, h, t, k)"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(b, h, t, k) -> (b, t, h·k)"""
    return x.transpose(1, 2).flatten(-2)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """softmax(scale Q Kᵀ + M) V of every head: q (b, t, h, k) and k, v (b, s, kv_heads, k) give (b, t, h, k).

    With `causal` no query sees a later key, and the last query meets the last key. `mask` is True where a query may
    look, or a number to add to the score: (b or 1, h or 1, t or 1, s). `scale` is 1/√k unless given.
    """
    if mask is None and not dropout and training.usable(q, k, v):
        return training.attention(q, k, v, causal, scale)
    t, s = q.shape[1], k.shape[1]
    if causal and (mask is not None or t != s):
        seen = torch.ones(t, s, dtype=torch.bool, device=q.device).tril(s - t)
        if mask is None or mask.dtype == torch.bool:
            mask = seen if mask is None else mask & seen
        else:
            mask = mask.masked_fill(~seen, -torch.inf)
        causal = False
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    grouped = q.shape[1] != k.shape[1]
    if mask is not None and mask.requires_grad and not grouped:
        return attend_with_learned_bias(q, k, v, mask, dropout, scale).transpose(1, 2)
    if q.dtype == torch.bfloat16 and q.device.type == "cpu" and not dropout:
        return attend_in_float32(q, k, v, mask, causal, scale).transpose(1, 2)
    y = F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=scale, enable_gqa=grouped)
    return y.transpose(1, 2)


def attend_in_float32(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None
) -> Tensor:
    """bfloat16 in and out, float32 between: on CPUs torch's fused kernel takes half the time so, forth and back."""
    grouped = q.shape[1] != k.shape[1]
    mask = mask if mask is None or mask.dtype == torch.bool else mask.float()
    with torch.autocast("cpu", enabled=False):
        y = F.scaled_dot_product_attention(
            q.float(), k.float(), v.float(), mask, is_causal=causal, scale=scale, enable_gqa=grouped
        )
    return y.to(q.dtype)


def attend_with_learned_bias(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, dropout: float, scale: float | None
) -> Tensor:
    """With a bias that has a gradient: no fused kernel gives it one, and torch's own long form is slower than this.

    A query that may look nowhere gets 0, as from the fused kernels.
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = (q if scale == 1 else q * scale) @ k.mT
    nowhere = bias.detach().amax(-1, keepdim=True) == -torch.inf  # (b or 1, h, t, 1)
    a = scores.add_(bias.masked_fill(nowhere, 0)).softmax(-1)
    return (F.dropout(a, dropout) @ v).masked_fill(nowhere, 0)


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
        y = attend(q, k, v, causal=True, dropout=self.dropout if self.training else 0.0)
        return self.out(y.flatten(-2))


class Attention(nn.Module):
    """Attention with a matrix each for Q, K and V; with fewer key heads than heads, a group of queries shares one.

    It looks from x (b, t, d) into `source` (b, s, d), or into x itself.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        kv_heads: int | None = None,
        head_size: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
    ):
        super().__init__()
        kv_heads, size = kv_heads or heads, head_size or width // heads
        if heads % kv_heads or (head_size is None and width % heads):
            raise ValueError(f"heads {heads} must divide width {width} and be a multiple of kv_heads {kv_heads}")
        self.heads, self.head_size, self.dropout, self.scale = heads, size, dropout, scale
        self.q = nn.Linear(width, heads * size, bias=bias)
        self.k = nn.Linear(width, kv_heads * size, bias=bias)
        self.v = nn.Linear(width, kv_heads * size, bias=bias)
        self.out = nn.Linear(heads * size, width, bias=bias)

    def forward(
        self,
        x: Tensor,
        source: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        angles: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """`mask` and `causal` as in `attend`; `angles` (cos, sin) turn queries and keys by their positions."""
        source = x if source is None else source
        parts = (self.q(x), self.k(source), self.v(source))
        q, k, v = (part.unflatten(-1, (-1, self.head_size)) for part in parts)
        if angles is not None:
            q, k = rotate(q, *angles), rotate(k, *angles)
        y = attend(q, k, v, causal, mask, self.dropout if self.training else 0.0, self.scale)
        return self.out(y.flatten(-2))
