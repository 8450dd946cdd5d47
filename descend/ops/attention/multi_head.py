"""Multi-head attention as it is written down: one attention for each head, side by side.

    head_i = attention(X W_i^Q, Y W_i^K, Y W_i^V)        i = 1..h,   d_k = d / h
    O = [head_1 .. head_h] W^O

X asks and Y is looked at: Y = X is self-attention, another sequence is cross-attention. Every head reads the whole
vector, through its own columns of the matrices. In grouped-query attention the h heads share the keys and values of
g < h groups, head i those of group ⌊i g / h⌋; g = 1 is multi-query attention, g = h is the form above.

Here a loop over the heads, without biases. `descend.nn.attention.multi_head` computes all heads at once.

Systems: multi-head-attention, cross-attention, grouped-query-attention, multi-query-attention
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.ops.attention.dot_product import attention


class Projections(NamedTuple):
    """W^Q, W^K, W^V and W^O; a vector is a row and is multiplied from the right."""

    q: Tensor
    k: Tensor
    v: Tensor
    o: Tensor


def split_heads(x: Tensor, heads: int) -> tuple[Tensor, ...]:
    """The columns of each head: (.., t, h·k) -> h times (.., t, k)."""
    return x.chunk(heads, dim=-1)


def multi_head_attention(x: Tensor, y: Tensor, w: Projections, heads: int, mask: Tensor | None = None) -> Tensor:
    """x (.., t, d) asks, y (.., s, d) is looked at; gives (.., t, d)."""
    q, k, v = (split_heads(z, heads) for z in (x @ w.q, y @ w.k, y @ w.v))
    found = [attention(q[i], k[i], v[i], mask)[0] for i in range(heads)]
    return torch.cat(found, dim=-1) @ w.o


def grouped_query_attention(x: Tensor, w: Projections, heads: int, groups: int, mask: Tensor | None = None) -> Tensor:
    """Self-attention in which the heads of a group share their keys and values."""
    q, k, v = split_heads(x @ w.q, heads), split_heads(x @ w.k, groups), split_heads(x @ w.v, groups)
    group = [i * groups // heads for i in range(heads)]
    found = [attention(q[i], k[group[i]], v[group[i]], mask)[0] for i in range(heads)]
    return torch.cat(found, dim=-1) @ w.o
