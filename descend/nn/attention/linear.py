"""Linear attention, the fast form: keys and values are summed once, for all queries or chunk by chunk.

    y_i = S φ(q_i) / z·φ(q_i),   S = Σ_j v_j φ(k_j)ᵀ,   z = Σ_j φ(k_j)                  both ways: one sum, O(t m d)
    causal, in chunks of c:      S and z of all chunks before, plus the masked c × c form inside the chunk

The running sums are kept once a chunk, not once a token: memory t (m d / c + c). It equals the masked t × t form in
`descend.ops.attention.linear`. φ = elu + 1 is never negative, so z·φ(q) is the sum of the weights.

Systems: linear-attention
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from descend.nn.attention.self_attention import SelfAttention
from descend.nn.attention.sliding_window import chunk
from descend.ops.attention.linear import elu_plus_one

CHUNK = 128


def divide_by_weights(y: Tensor) -> Tensor:
    """The weighted sum of the values over the sum of the weights, which stands in the last column."""
    return y[..., :-1] / y[..., -1:].clamp_min(torch.finfo(y.dtype).tiny)


def linear_attend(q_features: Tensor, k_features: Tensor, v: Tensor) -> Tensor:
    """All keys: features (b, t, h, m), v (b, s, h, k) -> (b, t, h, k)"""
    sums = torch.einsum("bshm,bshk->bhmk", k_features, F.pad(v, (0, 1), value=1.0))
    return divide_by_weights(torch.einsum("bthm,bhmk->bthk", q_features, sums))


def causal_linear_attend(q_features: Tensor, k_features: Tensor, v: Tensor, size: int = CHUNK) -> Tensor:
    """Keys up to the query: features (b, t, h, m), v (b, t, h, k) -> (b, t, h, k)"""
    t = v.shape[1]
    q, k, v = (chunk(x, min(size, t)) for x in (q_features, k_features, F.pad(v, (0, 1), value=1.0)))
    sums = torch.einsum("bnshm,bnshk->bnhmk", k, v)
    before = F.pad(sums.cumsum(dim=1)[:, :-1], (0, 0) * 3 + (1, 0))
    inside = torch.einsum("bnthm,bnshm->bnhts", q, k).tril()
    y = torch.einsum("bnthm,bnhmk->bnthk", q, before) + torch.einsum("bnhts,bnshk->bnthk", inside, v)
    return divide_by_weights(y).flatten(1, 2)[:, :t]


class LinearAttention(SelfAttention):
    """Attention with weights φ(q)·φ(k), φ = elu + 1, in time and memory that grow with t."""

    def __init__(self, width: int, heads: int):
        super().__init__(width, heads)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, causal: bool) -> Tensor:
        return kernel_mix(elu_plus_one(q), elu_plus_one(k), v, keep, causal)


def kernel_mix(q_features: Tensor, k_features: Tensor, v: Tensor, keep: Tensor | None, causal: bool) -> Tensor:
    """Either form; a key that is not kept has weight 0."""
    k_features = k_features if keep is None else k_features * keep[..., None, None]
    return (causal_linear_attend if causal else linear_attend)(q_features, k_features, v)
