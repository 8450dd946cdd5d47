"""The fast attention is the readable one, head by head."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.attention.multi_head import Attention, CausalSelfAttention, attend, join_heads, split_heads
from descend.ops.attention.dot_product import attention, causal_mask, padding_mask
from tests.close import close


def layer(width: int = 12, heads: int = 3) -> CausalSelfAttention:
    torch.manual_seed(0)
    return CausalSelfAttention(width, heads).double()


@pytest.mark.system("multi-head-attention", "per-head", "uses")
@pytest.mark.system("multi-head-attention")
@pytest.mark.system("causal-mask")
def test_fast_is_readable() -> None:
    attn, x = layer(), torch.randn(2, 5, 12, dtype=torch.float64)
    weight, bias = attn.qkv.weight.view(3, 3, 4, 12), attn.qkv.bias.view(3, 3, 4)  # q/k/v, head, k, d
    heads = []
    for i in range(3):  # the book's form: a matrix for each head and role, then the mixer
        q, k, v = (x @ weight[role, i].T + bias[role, i] for role in range(3))
        heads.append(attention(q, k, v, causal_mask(5))[0])
    close(attn(x), torch.cat(heads, -1) @ attn.out.weight.T + attn.out.bias)


@pytest.mark.system("multi-head-attention", "with-biases")
@pytest.mark.system("multi-head-attention")
def test_equals_torchs_multi_head_attention() -> None:
    attn, x = layer(), torch.randn(2, 5, 12, dtype=torch.float64)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(attn.qkv.weight)
        theirs.in_proj_bias.copy_(attn.qkv.bias)
        theirs.out_proj.weight.copy_(attn.out.weight)
        theirs.out_proj.bias.copy_(attn.out.bias)
    close(attn(x), theirs(x, x, x, attn_mask=~causal_mask(5))[0])


def test_heads_split_and_join() -> None:
    x = torch.arange(24.0).view(1, 2, 12)
    assert split_heads(x, 3).shape == (1, 3, 2, 4)
    assert torch.equal(join_heads(split_heads(x, 3)), x)


def test_width_must_divide() -> None:
    with pytest.raises(ValueError, match="not a multiple"):
        CausalSelfAttention(10, 3)


@pytest.mark.system("grouped-query-attention", "between")
@pytest.mark.system("multi-query-attention", "tied")
@pytest.mark.system("grouped-query-attention")
@pytest.mark.system("multi-query-attention")
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_grouped_queries_are_tied_heads(groups: int, dtype: torch.dtype) -> None:
    """G = n is multi-head, G = 1 multi-query attention; between them, heads h // (n/G) share keys and values."""
    torch.manual_seed(0)
    grouped, full = Attention(12, 4, groups).to(dtype), Attention(12, 4).to(dtype)
    state = grouped.state_dict()
    for name in ("k.weight", "v.weight", "k.bias", "v.bias"):
        heads = state[name].unflatten(0, (groups, 3)).repeat_interleave(4 // groups, 0)
        state[name] = heads.flatten(0, 1)
    full.load_state_dict(state)
    x = torch.randn(2, 5, 12, dtype=dtype)
    close(grouped(x, causal=True), full(x, causal=True))
    assert grouped.k.weight.numel() == 12 * 3 * groups


@pytest.mark.system("grouped-query-attention")
@pytest.mark.system("multi-query-attention")
def test_gradients_of_shared_keys() -> None:
    torch.manual_seed(0)
    attn, x = Attention(8, 4, 2).double(), torch.randn(1, 3, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: attn(x, causal=True), x)


@pytest.mark.system("grouped-query-attention", "divides")
@pytest.mark.system("grouped-query-attention")
def test_groups_must_divide_the_heads() -> None:
    with pytest.raises(ValueError, match="a multiple of kv_heads 3"):
        Attention(8, 4, 3)


@pytest.mark.system("padding-mask", "nowhere")
@pytest.mark.system("padding-mask")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", ["yes or no", "infinities", "with a learned bias"])
@pytest.mark.parametrize("causal", [True, False])
def test_a_row_that_may_look_nowhere_is_zero(kind: str, causal: bool, dtype: torch.dtype) -> None:
    """A text of padding alone: forward and backward are finite in every form, and the other text is as without it."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 6, 4, 8, dtype=dtype, requires_grad=True) for _ in range(3))
    bias = torch.randn(1, 4, 6, 6, dtype=dtype, requires_grad=True)
    seen = padding_mask(torch.tensor([0, 4]), 6)
    added = torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, -torch.inf)
    mask = {"yes or no": seen, "infinities": added, "with a learned bias": bias + added}[kind]
    y = attend(q, k, v, causal, mask)
    assert (y[0] == 0).all()
    alone = attend(q[1:], k[1:], v[1:], causal, mask[1:])
    if dtype != torch.bfloat16:  # too coarse to compare
        close(y[1:], alone)
    y.square().sum().backward()
    for x in (q, k, v, *([bias] if kind == "with a learned bias" else [])):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()
        assert x.grad.abs().sum() > 0
