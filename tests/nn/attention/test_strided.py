"""Sparse Transformer attention by rows and columns against the masked dense form."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.nn.attention.strided import FixedAttention, StridedAttention, fixed_attend, strided_attend
from descend.ops.attention.patterns import fixed, strided
from descend.theory.attention_cost import fit_exponent
from tests.close import close
from tests.nn.dense import dense, kept_for_backward, qkv

SLUG = "sparse-transformer-attention"


@pytest.mark.system(SLUG, "masked-dense")
@pytest.mark.system(SLUG)
@pytest.mark.system("sparse-softmax")
@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.integers(1, 80), st.integers(1, 20), st.integers(1, 3))
def test_equals_masked_dense(t: int, stride: int, summaries: int) -> None:
    q, k, v = qkv(t)
    close(strided_attend(q, k, v, stride), dense(q, k, v, strided(t, stride)))
    few = min(summaries, stride)
    close(fixed_attend(q, k, v, stride, few), dense(q, k, v, fixed(t, stride, few)))


@pytest.mark.system(SLUG, "memory")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("attend", [strided_attend, fixed_attend])
def test_gradients_and_memory(attend: object) -> None:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return attend(q, k, v, round(q.shape[1] ** 0.5))  # type: ignore[no-any-return, operator]

    inputs = [x.requires_grad_() for x in qkv(9, size=2)]
    assert torch.autograd.gradcheck(call, inputs, fast_mode=True)
    sizes = [1024, 4096]
    kept = [kept_for_backward(call, qkv(t)) for t in sizes]
    assert fit_exponent(sizes, kept) < 1.55  # t √t
    assert kept[0] < kept_for_backward(lambda q, k, v: dense(q, k, v, None), qkv(1024)) / 4


@pytest.mark.system(SLUG, "connected")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("attn", [StridedAttention(8, 2, 4), FixedAttention(8, 2, 4)])
def test_modules_are_causal_and_two_layers_connect_all(attn: torch.nn.Module) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 16, 8, requires_grad=True)
    [grad] = torch.autograd.grad(attn(attn(x))[0, 13].sum(), x)
    assert grad[0].abs().sum(-1).nonzero().flatten().tolist() == list(range(14))
    keep = (torch.arange(16) < 13)[None, None, None]
    close(attn(x, keep, causal=True), attn(x))  # padding behind the text is later than every token
    with pytest.raises(ValueError, match="pad at the end"):
        attn(x, keep.flip(-1))


def test_bad_sizes_are_named() -> None:
    with pytest.raises(ValueError, match="stride 0"):
        StridedAttention(8, 2, 0)
    with pytest.raises(ValueError, match="5 summaries of a block of 4"):
        FixedAttention(8, 2, 4, summaries=5)
