"""What attention can and cannot do, as numbers: order, span, one query at a time.

    f(P X) = P f(X)             equivariance: the outputs move with the inputs      (bare self-attention)
    f(P X) = f(X)               invariance                                          (only after a symmetric pooling)
    rank [V; O] = rank V        O = A V stays in the span of the VALUES: attention mixes, the feed-forward part bends
    o_i = Σ_j a_ij v_j          query by query, the same as the matrix form

DLN, VOM 11 and others say "permutation-invariant"; the exact word is equivariant. A causal mask or position encodings
break it. DLN's "span of the inputs" holds for softmax(X Xᵀ) X; with W^V it is the span of the rows of X W^V.

Systems: attention-permutation-equivariance, attention-properties
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.ops.attention.dot_product import attention

Layer = Callable[[Tensor], Tensor]


def equivariance_error(layer: Layer, x: Tensor, permutation: Tensor) -> float:
    """max |f(P X) − P f(X)| for x (.., t, d) and a permutation of the t rows."""
    return float((layer(x[..., permutation, :]) - layer(x)[..., permutation, :]).detach().abs().max())


def invariance_error(layer: Layer, x: Tensor, permutation: Tensor) -> float:
    """max |f(P X) − f(X)|; f may also pool the rows away."""
    return float((layer(x[..., permutation, :]) - layer(x)).detach().abs().max())


def worst_equivariance_error(layer: Layer, x: Tensor, seed: int = 0, draws: int = 8) -> float:
    """The largest error over random permutations: 0 to rounding for a layer that does not see the order."""
    random = torch.Generator().manual_seed(seed)
    orders = (torch.randperm(x.shape[-2], generator=random) for _ in range(draws))
    return max(equivariance_error(layer, x, order.to(x.device)) for order in orders)


def joint_rank(v: Tensor, o: Tensor) -> int:
    """rank [V; O]; equal to rank V when every row of O is a mixture of rows of V."""
    return int(torch.linalg.matrix_rank(torch.cat([v, o], dim=-2)))


def attention_by_query(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One query after another: q (t, k), k (s, k), v (s, v) -> (t, v); `attention` does all at once."""
    return torch.stack([attention(query[None], k, v)[0][0] for query in q])
