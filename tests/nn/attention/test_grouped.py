"""Grouped queries from multi-head weights: exact where heads were equal, means elsewhere; counts; LLaMA 2."""

from __future__ import annotations

import pytest
import torch

from descend.models.llama import SIZES
from descend.nn.attention.grouped import group_queries, pool_heads
from descend.nn.attention.multi_head import Attention
from descend.theory.cache import cache_numbers
from tests.close import close

GROUPED, SINGLE = "grouped-query-attention", "multi-query-attention"


def layer(bias: bool = True) -> Attention:
    torch.manual_seed(0)
    return Attention(12, 4, bias=bias).double()


@pytest.mark.system(GROUPED, "pooling")
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("bias", [True, False])
def test_equal_heads_lose_nothing(groups: int, bias: bool) -> None:
    torch.manual_seed(1)
    small = Attention(12, 4, groups, bias=bias).double()
    state = small.state_dict()
    for name in [key for key in state if key[0] in "kv"]:
        state[name] = state[name].unflatten(0, (groups, 3)).repeat_interleave(4 // groups, 0).flatten(0, 1)
    full = layer(bias)
    full.load_state_dict(state)
    found, x = group_queries(full, groups), torch.randn(2, 5, 12, dtype=torch.float64)
    close(found(x, causal=True), full(x, causal=True))
    for a, b in zip(found.parameters(), small.parameters(), strict=True):
        close(a, b)


@pytest.mark.system(GROUPED, "pooling")
def test_a_group_has_the_mean_of_its_heads() -> None:
    full = layer()
    found = group_queries(full, 2)
    close(found.k.weight[:3], (full.k.weight[0:3] + full.k.weight[3:6]) / 2)
    close(found.v.bias[3:], (full.v.bias[6:9] + full.v.bias[9:12]) / 2)
    assert torch.equal(found.q.weight, full.q.weight)
    assert torch.equal(found.out.weight, full.out.weight)
    again = group_queries(found, 1)
    close(again.k.weight, group_queries(full, 1).k.weight)  # the mean of means
    with pytest.raises(ValueError, match="4 heads cannot be pooled into 3 groups"):
        pool_heads(full.k.weight, 4, 3)


@pytest.mark.system(SINGLE, "parameters")
@pytest.mark.parametrize(("width", "heads"), [(12, 3), (64, 8)])
def test_parameters_of_multi_query_attention(width: int, heads: int) -> None:
    """2 d H d_k + 2 d d_k: the keys and the values have d · d_k each."""
    size = width // heads
    attn = Attention(width, heads, 1, bias=False)
    assert attn.k.weight.numel() == attn.v.weight.numel() == width * size
    assert sum(p.numel() for p in attn.parameters()) == 2 * width * heads * size + 2 * width * size


@pytest.mark.system(GROUPED, "llama-2")
def test_llama_2() -> None:
    """8 groups in the model of 70 billion; the small one is plain multi-head attention, which DLN calls one group."""
    small, large = SIZES["llama-2-7b"], SIZES["llama-2-70b"]
    assert (small.heads, small.kv_heads) == (32, 32)
    assert (large.heads, large.kv_heads) == (64, 8)
    assert small.context == large.context == 4096
    size = large.width // large.heads
    assert cache_numbers(64, size) == 8 * cache_numbers(8, size)
