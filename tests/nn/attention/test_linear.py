"""Linear attention by sums and by chunks against its own t × t form."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.nn.attention.linear import LinearAttention, causal_linear_attend, linear_attend
from descend.ops.attention.dot_product import causal_mask
from descend.ops.attention.linear import elu_plus_one, kernel_attention
from tests.close import close
from tests.nn.dense import kept_for_backward, qkv

SLUG = "linear-attention"


def quadratic(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    return kernel_attention(*(x.transpose(1, 2) for x in (q, k, v)), mask)[0].transpose(1, 2)


@pytest.mark.system(SLUG, "quadratic", "causal")
@pytest.mark.system(SLUG)
@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.integers(1, 70), st.integers(1, 30))
def test_equals_the_quadratic_form(t: int, size: int) -> None:
    q, k, v = qkv(t)
    q, k = elu_plus_one(q), elu_plus_one(k)
    close(linear_attend(q, k, v), quadratic(q, k, v))
    close(causal_linear_attend(q, k, v, size), quadratic(q, k, v, causal_mask(t)))


@pytest.mark.system(SLUG, "cost")
@pytest.mark.system(SLUG)
def test_gradients_and_memory() -> None:
    inputs = [x.requires_grad_() for x in qkv(7, size=2)]

    def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return causal_linear_attend(elu_plus_one(q), elu_plus_one(k), v, 16)

    assert torch.autograd.gradcheck(lambda q, k, v: causal(q, k, v), inputs, fast_mode=True)
    for call in (causal, lambda q, k, v: linear_attend(elu_plus_one(q), elu_plus_one(k), v)):
        short, long = (kept_for_backward(call, qkv(t)) for t in (1024, 2048))
        assert long < 2.1 * short


@pytest.mark.system(SLUG, "module")
@pytest.mark.system(SLUG)
def test_module_both_ways_and_causal() -> None:
    torch.manual_seed(0)
    attn = LinearAttention(8, 2).double()
    x = torch.randn(1, 300, 8, dtype=torch.float64)
    other = x.clone()
    other[:, 200:] = 3.0
    close(attn(x, causal=True)[:, :200], attn(other, causal=True)[:, :200])
    assert (attn(x)[:, :200] - attn(other)[:, :200]).abs().max() > 1e-3
    keep = (torch.arange(300) < 200)[None, None, None]
    close(attn(x, keep)[:, :200], attn(x[:, :200]))  # padding has no weight
    assert attn(1e4 * x).isfinite().all()
