"""The readable attention against torch's own, by gradcheck, and by its properties."""

from __future__ import annotations

from collections.abc import Callable

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


@pytest.mark.system("qkv-soft-attention", "weights")
@pytest.mark.system("scaled-dot-product-attention", "torch")
@pytest.mark.system("scaled-dot-product-attention")
@pytest.mark.system("qkv-soft-attention")
@given(t=st.integers(1, 6), s=st.integers(1, 6), k=st.integers(1, 5), v=st.integers(1, 4), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_equals_torch_for_any_lengths(t: int, s: int, k: int, v: int, seed: int) -> None:
    q, key, value = qkv(t, s, k, v, seed)
    out, weights = attention(q, key, value)
    close(out, F.scaled_dot_product_attention(q, key, value))
    close(weights.sum(-1), torch.ones(2, 3, t, dtype=torch.float64))


@pytest.mark.system("causal-mask", "torch")
@pytest.mark.system("scaled-dot-product-attention", "mask")
@pytest.mark.system("scaled-dot-product-attention")
@pytest.mark.system("causal-mask")
def test_equals_torch_under_the_causal_mask() -> None:
    q, k, v = qkv(6, 6)
    close(attention(q, k, v, causal_mask(6))[0], F.scaled_dot_product_attention(q, k, v, is_causal=True))


@pytest.mark.system("scaled-dot-product-attention", "gradients")
@pytest.mark.system("scaled-dot-product-attention")
def test_gradcheck() -> None:
    inputs = tuple(x.requires_grad_() for x in qkv(3, 4))
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v)[0], inputs)


@pytest.mark.system("qkv-soft-attention", "mean")
@pytest.mark.system("qkv-soft-attention")
def test_uniform_scores_give_the_mean_and_large_scores_retrieve_one_value() -> None:
    q, k, v = qkv(3, 4)
    close(attention(torch.zeros_like(q), k, v)[0], v.mean(-2, keepdim=True).expand(2, 3, 3, 5))
    best = (q @ k.mT).argmax(-1)
    close(attention(1e6 * q, k, v)[0], v.gather(-2, best[..., None].expand(2, 3, 3, 5)))


@pytest.mark.system("attention-head-and-layer-probes", "value-limit")
@pytest.mark.system("qkv-soft-attention", "hard")
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


@pytest.mark.system("causal-mask", "no-future")
@pytest.mark.system("causal-mask")
def test_no_position_sees_the_future() -> None:
    q, k, v = qkv(5, 5)
    before = attention(q, k, v, causal_mask(5))[0]
    k[:, :, 3:], v[:, :, 3:] = 9.0, -9.0
    after = attention(q, k, v, causal_mask(5))[0]
    assert torch.equal(before[:, :, :3], after[:, :, :3])
    assert not torch.equal(before[:, :, 3:], after[:, :, 3:])


@pytest.mark.system("padding-mask", "keys")
@pytest.mark.system("padding-mask")
def test_padded_keys_do_not_count_and_padded_queries_stay_finite() -> None:
    q, k, v = qkv(4, 4)
    lengths = torch.tensor([2, 4])
    out, weights = attention(q, k, v, padding_mask(lengths, 4))
    close(out[0], attention(q[0], k[0, :, :2], v[0, :, :2])[0])
    assert torch.isfinite(out).all()
    assert (weights[0, ..., 2:] == 0).all()


@pytest.mark.system("padding-mask", "nowhere")
@pytest.mark.system("padding-mask")
def test_a_row_that_may_look_nowhere_is_zero_forward_and_backward() -> None:
    q, k, v = (x.requires_grad_() for x in qkv(4, 4))
    mask = padding_mask(torch.tensor([0, 3]), 4)  # a text of padding alone beside one of three tokens
    out, weights = attention(q, k, v, mask)
    assert (out[0] == 0).all()
    assert (weights[0] == 0).all()
    close(weights[1].sum(-1), torch.ones(weights.shape[1:3], dtype=weights.dtype))
    (out * torch.linspace(0.5, 1.5, out.numel()).view_as(out)).sum().backward()
    for x in (q, k, v):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()
        assert (x.grad[0] == 0).all()
        assert (x.grad[1] != 0).any()


def test_masks_as_booleans_and_as_infinities() -> None:
    q, k, v = qkv(3, 3)
    mask = causal_mask(3)
    added = q @ k.mT / 5**0.5 + additive(mask, torch.float64)
    close(added.softmax(-1) @ v, attention(q, k, v, mask)[0])
    assert causal_mask(2, 5).tolist() == [[True] * 4 + [False], [True] * 5]


@pytest.mark.system("qkv-soft-attention", "any-score")
@pytest.mark.parametrize(
    "score",
    [
        scores,
        lambda q, k: q @ k.mT,
        lambda q, k: -torch.cdist(q, k).square(),
        lambda q, k: F.cosine_similarity(q[..., :, None, :], k[..., None, :, :], dim=-1),
    ],
    ids=["scaled", "dot", "distance", "cosine"],
)
def test_any_score_is_a_softmax_over_the_keys_that_may_be_seen(score: Callable[..., torch.Tensor]) -> None:
    q, k, v = qkv(4, 6)
    mask = torch.rand(4, 6, generator=torch.Generator().manual_seed(1)) < 0.6
    mask[:, 0] = True
    out, a = soft_attention(q, k, v, score, mask)
    e = score(q, k).exp() * mask
    close(a, e / e.sum(-1, keepdim=True))
    close(out, torch.einsum("bhts,bhsv->bhtv", a, v))


@pytest.mark.system("qkv-soft-attention", "convex")
@given(seed=st.integers(0, 99), size=st.floats(0.1, 20))
@settings(deadline=None, max_examples=20)
def test_outputs_lie_inside_the_hull_of_the_values(seed: int, size: float) -> None:
    """Weights are at least 0 and sum to 1; so along any direction the output lies between the values."""
    q, k, v = qkv(3, 5, seed=seed)
    out, a = attention(size * q, k, v)
    assert (a >= 0).all()
    close(a.sum(-1), torch.ones(2, 3, 3, dtype=torch.float64))
    along = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    low, high = (v @ along).amin(-2, keepdim=True), (v @ along).amax(-2, keepdim=True)
    assert (out @ along >= low - 1e-12).all()
    assert (out @ along <= high + 1e-12).all()


@pytest.mark.system("scaled-dot-product-attention", "equal-keys")
def test_identical_keys_give_the_mean_of_the_values() -> None:
    q, k, v = qkv(3, 4)
    out, a = attention(q, k[:, :, :1].expand_as(k), v)
    close(a, torch.full_like(a, 1 / 4))
    close(out, v.mean(-2, keepdim=True).expand_as(out))


@pytest.mark.system("scaled-dot-product-attention", "doubling")
def test_twice_the_input_is_not_twice_the_output_but_twice_the_values_are() -> None:
    x, _, _ = qkv(4, 4)
    once = attention(x, x, x)[0]
    assert (attention(2 * x, 2 * x, 2 * x)[0] - 2 * once).abs().max() > 0.1
    close(attention(x, x, 2 * x)[0], 2 * once)


@pytest.mark.system("causal-mask", "triangle", "no-future")
def test_the_weights_are_a_triangle_and_later_inputs_have_no_gradient() -> None:
    q, k, v = (x.requires_grad_() for x in qkv(5, 5))
    out, a = attention(q, k, v, causal_mask(5))
    assert (a.triu(1) == 0).all()
    assert (a.detach().tril() > 0).sum() == 2 * 3 * 15, "and every earlier position is seen"
    assert (a[..., 0, 0] == 1).all(), "the first position has itself alone"
    close(out[..., 0, :], v[..., 0, :])
    for i in range(5):
        for part in torch.autograd.grad(out[..., i, :].sum(), (k, v), retain_graph=True):
            assert not part[:, :, i + 1 :].any()
            assert part.isfinite().all()


@pytest.mark.system("cross-attention", "question")
def test_an_external_question_is_a_row_of_cross_attention() -> None:
    """DLD 5.8, without the scale: one question gives one token, whatever other questions are asked."""
    questions, k, v = qkv(3, 6)
    many = unscaled_attention(questions, k, v)[0]
    for i in range(3):
        one = questions[:, :, i : i + 1]
        close(unscaled_attention(one, k, v)[0], many[:, :, i : i + 1])
        close(unscaled_attention(one, k, v)[0], (one @ k.mT).softmax(-1) @ v)
    assert (many - attention(questions, k, v)[0]).abs().max() > 0.1, "the scaled form is another"
