"""The readable attention against torch's own, by gradcheck, and by its properties."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.ops.attention.dot_product import (
    additive,
    attention,
    causal_mask,
    hard_attention,
    padding_mask,
    scores,
    soft_attention,
    unscaled_attention,
)
from tests.close import close


def qkv(t: int, s: int, k: int = 5, v: int = 5, seed: int = 0) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    shapes = (2, 3, t, k), (2, 3, s, k), (2, 3, s, v)
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)


@pytest.mark.system("scaled-dot-product-attention", "qkv-soft-attention")
@given(t=st.integers(1, 6), s=st.integers(1, 6), k=st.integers(1, 5), v=st.integers(1, 4), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_equals_torch_for_any_lengths(t: int, s: int, k: int, v: int, seed: int) -> None:
    q, key, value = qkv(t, s, k, v, seed)
    out, weights = attention(q, key, value)
    close(out, F.scaled_dot_product_attention(q, key, value))
    close(weights.sum(-1), torch.ones(2, 3, t, dtype=torch.float64))


@pytest.mark.system("scaled-dot-product-attention", "causal-mask")
def test_equals_torch_under_the_causal_mask() -> None:
    q, k, v = qkv(6, 6)
    close(attention(q, k, v, causal_mask(6))[0], F.scaled_dot_product_attention(q, k, v, is_causal=True))


@pytest.mark.system("scaled-dot-product-attention")
def test_gradcheck() -> None:
    inputs = tuple(x.requires_grad_() for x in qkv(3, 4))
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v)[0], inputs)


@pytest.mark.system("qkv-soft-attention")
def test_uniform_scores_give_the_mean_and_large_scores_retrieve_one_value() -> None:
    q, k, v = qkv(3, 4)
    close(attention(torch.zeros_like(q), k, v)[0], v.mean(-2, keepdim=True).expand(2, 3, 3, 5))
    best = (q @ k.mT).argmax(-1)
    close(attention(1e6 * q, k, v)[0], v.gather(-2, best[..., None].expand(2, 3, 3, 5)))


@pytest.mark.system("qkv-soft-attention")
def test_hard_attention_is_the_limit_of_growing_scores() -> None:
    q, k, v = qkv(3, 4)
    hard = hard_attention(q, k, v)
    errors = [float((attention(factor * q, k, v)[0] - hard).abs().max()) for factor in (1.0, 10.0, 100.0, 1e5)]
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 1e-9


@pytest.mark.system("qkv-soft-attention")
def test_any_similarity_will_do() -> None:
    q, k, v = qkv(3, 4)
    for ours, theirs in zip(soft_attention(q, k, v, scores), attention(q, k, v), strict=True):
        close(ours, theirs)
    near, a = soft_attention(q, k, v, lambda q, k: -torch.cdist(q, k).square())
    close(a.sum(-1), torch.ones(2, 3, 3, dtype=torch.float64))
    assert (a.argmax(-1) == torch.cdist(q, k).argmin(-1)).all()
    assert (near <= v.amax(-2, keepdim=True)).all(), "a mean stays between the values"


@pytest.mark.system("unscaled-self-attention")
def test_unscaled_is_torch_with_scale_one() -> None:
    q, k, v = qkv(3, 4)
    close(unscaled_attention(q, k, v)[0], F.scaled_dot_product_attention(q, k, v, scale=1.0))


@pytest.mark.system("causal-mask")
def test_no_position_sees_the_future() -> None:
    q, k, v = qkv(5, 5)
    before = attention(q, k, v, causal_mask(5))[0]
    k[:, :, 3:], v[:, :, 3:] = 9.0, -9.0
    after = attention(q, k, v, causal_mask(5))[0]
    assert torch.equal(before[:, :, :3], after[:, :, :3])
    assert not torch.equal(before[:, :, 3:], after[:, :, 3:])


@pytest.mark.system("padding-mask")
def test_padded_keys_do_not_count_and_padded_queries_stay_finite() -> None:
    q, k, v = qkv(4, 4)
    lengths = torch.tensor([2, 4])
    out, weights = attention(q, k, v, padding_mask(lengths, 4))
    close(out[0], attention(q[0], k[0, :, :2], v[0, :, :2])[0])
    assert torch.isfinite(out).all()
    assert (weights[0, ..., 2:] == 0).all()


def test_masks_as_booleans_and_as_infinities() -> None:
    q, k, v = qkv(3, 3)
    mask = causal_mask(3)
    added = q @ k.mT / 5**0.5 + additive(mask, torch.float64)
    close(added.softmax(-1) @ v, attention(q, k, v, mask)[0])
    assert causal_mask(2, 5).tolist() == [[True] * 4 + [False], [True] * 5]
