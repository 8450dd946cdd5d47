"""The loop over heads against torch's layer and fused kernel."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.ops.attention.dot_product import causal_mask
from descend.ops.attention.multi_head import Projections, grouped_query_attention, multi_head_attention
from tests.close import close

WIDTH, HEADS = 24, 6


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.system("multi-head-attention")
@pytest.mark.system("cross-attention")
@pytest.mark.parametrize("crossed", [False, True])
def test_it_is_torchs_layer(crossed: bool) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(WIDTH, HEADS, bias=False, batch_first=True, dtype=torch.float64)
    q, k, v = layer.in_proj_weight.chunk(3)
    w = Projections(q.T, k.T, v.T, layer.out_proj.weight.T)
    x = draw(2, 5, WIDTH, seed=1)
    y, mask = (draw(2, 7, WIDTH, seed=2), None) if crossed else (x, causal_mask(5))
    theirs, _ = layer(x, y, y, attn_mask=None if mask is None else ~mask)
    close(multi_head_attention(x, y, w, HEADS, mask), theirs)


@pytest.mark.system("grouped-query-attention")
@pytest.mark.system("multi-query-attention")
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_heads_of_a_group_share_keys_and_values(groups: int) -> None:
    size = WIDTH // HEADS
    w = Projections(*(draw(WIDTH, n, seed=n + i) for i, n in enumerate((WIDTH, groups * size, groups * size, WIDTH))))
    x = draw(2, 5, WIDTH, seed=3)
    q, k, v = (z.unflatten(-1, (-1, size)).transpose(1, 2) for z in (x @ w.q, x @ w.k, x @ w.v))
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(-2) @ w.o
    close(grouped_query_attention(x, w, HEADS, groups, causal_mask(5)), theirs)
    if groups == HEADS:
        close(multi_head_attention(x, x, w, HEADS, causal_mask(5)), theirs)
