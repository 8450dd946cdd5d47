"""Linformer: with identity projections full attention; scores t × p; padding and length."""

from __future__ import annotations

import pytest
import torch

from descend.nn.attention.linformer import LinformerAttention, linformer_attend
from descend.ops.attention.dot_product import attention
from tests.close import close
from tests.nn.dense import dense, kept_for_backward, qkv

SLUG = "linformer"


@pytest.mark.system(SLUG, "identity")
@pytest.mark.system(SLUG)
def test_identity_projections_give_full_attention() -> None:
    q, k, v = qkv(12)
    eye = torch.eye(12, dtype=torch.float64)
    close(linformer_attend(q, k, v, eye, eye), dense(q, k, v, None))


@pytest.mark.system(SLUG, "equation")
@pytest.mark.system(SLUG)
def test_equation_of_the_paper() -> None:
    """softmax(Q (E K)ᵀ / √d) F V of each head."""
    q, k, v = qkv(12)
    e, f = torch.randn(2, 5, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    y = linformer_attend(q, k, v, e, f)
    assert attention(q[0, :, 1], e @ k[0, :, 1], f @ v[0, :, 1])[1].shape == (12, 5)
    close(y[0, :, 1], attention(q[0, :, 1], e @ k[0, :, 1], f @ v[0, :, 1])[0])
    inputs = [x.requires_grad_() for x in (*qkv(5, size=2), e[:3, :5].clone(), f[:3, :5].clone())]
    assert torch.autograd.gradcheck(linformer_attend, inputs, fast_mode=True)


@pytest.mark.system(SLUG, "module")
@pytest.mark.system(SLUG)
def test_module() -> None:
    torch.manual_seed(0)
    attn = LinformerAttention(8, 2, context=20, projected=6)
    x = torch.randn(2, 20, 8)
    assert attn(x).shape == x.shape
    assert [p.shape for p in (attn.e, attn.f)] == [(6, 20), (6, 20)]
    keep = (torch.arange(20) < 15).expand(2, 1, 1, 20)
    close(attn(x, keep)[:, :15], attn(x[:, :15]))  # a shorter text is a padded one
    with pytest.raises(ValueError, match="projection is for 20"):
        attn(torch.randn(1, 21, 8))
    with pytest.raises(ValueError, match="both directions"):
        attn(x, causal=True)


@pytest.mark.system(SLUG, "linear")
@pytest.mark.system(SLUG)
def test_memory_is_linear() -> None:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        e = torch.ones(8, q.shape[1]) / q.shape[1]
        return linformer_attend(q, k, v, e, e)

    short, long = (kept_for_backward(call, qkv(t)) for t in (1024, 2048))
    assert long < 2.1 * short
