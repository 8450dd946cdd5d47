"""From multi-head to grouped queries: each group's key and value head is the mean of the heads it replaces.

    W_g^K = (G/n) Σ_{i in group g} W_i^K,   W_g^V alike          n/G heads in a group; queries and W^O stay

Exact where the heads of a group were equal; otherwise a start for training on. DLN names the conversion without a
formula; the mean is that of the paper (Ainslie et al. 2023), who found it better than a single head or a new one.

Systems: grouped-query-attention, multi-query-attention
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.nn.attention.multi_head import Attention


def pool_heads(weight: Tensor, heads: int, groups: int) -> Tensor:
    """(h·k, ..) -> (g·k, ..): the mean of neighbouring heads; rows of a matrix or numbers of a bias."""
    if heads % groups:
        raise ValueError(f"{heads} heads cannot be pooled into {groups} groups evenly: the number must divide")
    return weight.unflatten(0, (groups, heads // groups, -1)).mean(1).flatten(0, 1)


def group_queries(attn: Attention, groups: int) -> Attention:
    """The layer with this many key and value heads, made from its own; G = 1 is multi-query attention."""
    width, kv_heads = attn.q.in_features, attn.k.out_features // attn.head_size
    bias = attn.k.bias is not None
    found = Attention(width, attn.heads, groups, attn.head_size, bias, attn.dropout, attn.scale).to(attn.k.weight)
    state = attn.state_dict()
    pooled = {
        name: pool_heads(value, kv_heads, groups) if name.partition(".")[0] in ("k", "v") else value
        for name, value in state.items()
    }
    with torch.no_grad():
        found.load_state_dict(pooled)
    return found.train(attn.training)
