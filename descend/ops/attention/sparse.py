"""Sparse softmax: each query has its own set of permitted keys, and only those are scored.

    A_ij = exp S_ij / Σ_{k ∈ N(i)} exp S_ik   for j ∈ N(i), else 0            y_i = Σ_{j ∈ N(i)} A_ij v_j
    ∂A_ij/∂S_ik = A_ij (δ_jk − A_ik)          for k ∈ N(i), else 0

As a mask it is the softmax of S + M with M = −inf outside N(i). As a true sparse computation only the permitted keys
are gathered: t × m scores for sets of at most m. MF's "non-zero scores only" means permitted ones: a score may be 0.

Systems: sparse-softmax
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.ops.attention.dot_product import additive
from descend.ops.softmax import jacobian


def sparse_softmax(s: Tensor, permitted: Tensor) -> Tensor:
    """A: the softmax over the permitted entries of each row, 0 elsewhere; a row without any is all 0."""
    a = (s + additive(permitted, s.dtype)).softmax(dim=-1)
    return torch.where(permitted.any(-1, keepdim=True), a, 0.0)


def sparse_jacobian(a: Tensor) -> Tensor:
    """∂A_j/∂S_k = A_j (δ_jk − A_k): where A is 0, rows and columns are 0 too."""
    return jacobian(a)


def neighbours(permitted: Tensor) -> tuple[Tensor, Tensor]:
    """The sets N(i) as an index (t, m) of keys and a mask (t, m) that is False behind the end of a shorter set."""
    sizes = permitted.sum(-1)
    index = permitted.int().argsort(dim=-1, descending=True, stable=True)[..., : int(sizes.max())]
    return index, torch.arange(index.shape[-1]) < sizes[..., None]


def sparse_attention(q: Tensor, k: Tensor, v: Tensor, index: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """y (.., t, v) and A (.., t, m) from the permitted keys alone: q (.., t, k), k, v (.., s, k), index (t, m)."""
    scores = (q[..., None, :] * k[..., index, :]).sum(-1) / math.sqrt(q.shape[-1])
    a = sparse_softmax(scores, real)
    return (a[..., None] * v[..., index, :]).sum(-2), a
