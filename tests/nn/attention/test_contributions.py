"""The output of attention head by head: the summands, a head taken away, and what a block-diagonal W^O would mean."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.nn.attention.contributions import block_norms, contributions, output_blocks, silence_heads
from descend.nn.attention.multi_head import Attention, CausalSelfAttention
from descend.nn.attention.single_head import SingleHead
from descend.ops.attention.dot_product import attention, causal_mask
from tests.close import close

SLUG = "multi-head-attention"


def given() -> Tensor:
    return torch.randn(2, 5, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def layer(kind: type[Attention] | type[CausalSelfAttention] = Attention) -> Attention | CausalSelfAttention:
    torch.manual_seed(0)
    return kind(12, 3).double()


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "contribution")
@pytest.mark.parametrize("kind", [Attention, CausalSelfAttention])
def test_contributions_and_the_bias_add_up(kind: type[Attention] | type[CausalSelfAttention]) -> None:
    attn, x = layer(kind), given()
    parts = contributions(attn, x)
    assert parts.shape == (2, 3, 5, 12)
    close(parts.sum(1) + attn.out.bias, attn(x))
    source = torch.randn(2, 7, 12, dtype=torch.float64)
    if isinstance(attn, Attention):
        close(contributions(attn, x, source).sum(1) + attn.out.bias, attn(x, source))
        q, k, v = (m(x).unflatten(-1, (3, 4))[:, :, 1] for m in (attn.q, attn.k, attn.v))
        close(parts[:, 1], attention(q, k, v)[0] @ attn.out.weight[:, 4:8].T)


@pytest.mark.system(SLUG, "contribution")
@pytest.mark.parametrize("kind", [Attention, CausalSelfAttention])
def test_a_silent_head_is_a_block_of_zeros(kind: type[Attention] | type[CausalSelfAttention]) -> None:
    attn, x = layer(kind), given()
    whole, parts = attn(x), contributions(attn, x)
    with silence_heads(attn, [1]):
        close(attn(x), whole - parts[:, 1])
    with silence_heads(attn, [0, 1, 2]):
        close(attn(x), attn.out.bias.expand_as(x))
    assert torch.equal(attn(x), whole), "and afterwards it is as before"
    with torch.no_grad():
        attn.out.weight[:, 4:8] = 0
    close(attn(x), whole - parts[:, 1])
    assert (block_norms(attn) > 0).tolist() == [True, False, True]


@pytest.mark.system(SLUG, "contribution")
def test_a_block_diagonal_matrix_keeps_the_heads_apart() -> None:
    attn, x = layer(), given()
    w = torch.block_diag(*torch.randn(3, 4, 4, dtype=torch.float64))
    with torch.no_grad():
        attn.out.weight.copy_(w)
    parts = contributions(attn, x)
    for head in range(3):
        others = [c for c in range(12) if c // 4 != head]
        assert not parts[:, head, :, others].any()
        assert parts[:, head, :, 4 * head : 4 * head + 4].abs().min() > 0
    mixed = contributions(layer(), x)
    assert (mixed != 0).all(), "a full W^O sends every head to every feature"
    close(block_norms(attn), torch.stack([b.norm() for b in output_blocks(attn)]))


@pytest.mark.system(SLUG, "one-head")
@pytest.mark.parametrize("causal", [False, True])
def test_one_head_with_the_identity_is_single_head_attention(causal: bool) -> None:
    torch.manual_seed(0)
    attn, head, x = Attention(12, 1).double(), SingleHead(12, 12).double(), given()
    with torch.no_grad():
        nn.init.eye_(attn.out.weight)
        nn.init.zeros_(attn.out.bias)
    head.load_state_dict({k: v for k, v in attn.state_dict().items() if not k.startswith("out")})
    close(attn(x, causal=causal), head(x, causal_mask(5) if causal else None)[0])


@pytest.mark.system(SLUG, "without-biases")
def test_without_biases_it_is_torchs() -> None:
    torch.manual_seed(0)
    attn, x = Attention(12, 3, bias=False).double(), given()
    theirs = nn.MultiheadAttention(12, 3, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([attn.q.weight, attn.k.weight, attn.v.weight]))
        theirs.out_proj.weight.copy_(attn.out.weight)
    close(attn(x), theirs(x, x, x)[0])
    assert sum(p.numel() for p in attn.parameters()) == 4 * 12**2
