"""Performer: equal to its own kernel, near to softmax attention, with the corrections of the errata."""

from __future__ import annotations

import math

import pytest
import torch

from descend.nn.attention.performer import PerformerAttention, performer_mix
from descend.nn.attention.self_attention import SelfAttention
from descend.ops.attention.dot_product import causal_mask
from descend.ops.attention.linear import kernel_attention
from descend.ops.attention.random_features import orthogonal_rows, positive_features, scale_by_root
from tests.close import close
from tests.nn.dense import dense, kept_for_backward, qkv

SLUG = "performer"


def rows(m: int, d: int = 4, seed: int = 0) -> torch.Tensor:
    return orthogonal_rows(m, d, torch.Generator().manual_seed(seed), torch.float64)


@pytest.mark.system(SLUG, "scaling")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("causal", [False, True])
def test_equals_the_kernel_of_the_printed_features(causal: bool) -> None:
    """With inputs scaled by d^(−1/4) and the row normaliser; taking out the largest exponent changes nothing."""
    q, k, v = qkv(33)
    w = rows(7)
    q_features, k_features = (positive_features(scale_by_root(x), w) for x in (q, k))
    heads = [x.transpose(1, 2) for x in (q_features, k_features, v)]
    expected = kernel_attention(*heads, causal_mask(33) if causal else None)[0].transpose(1, 2)
    close(performer_mix(q, k, v, w, causal=causal), expected)


@pytest.mark.system(SLUG, "error")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("causal", [False, True])
def test_error_against_softmax_attention_falls_as_one_over_root_m(causal: bool) -> None:
    q, k, v = (
        0.5 * x for x in qkv(24)
    )  # large kernel values need many more features: their variance grows as exp(‖q + k‖²)
    exact = dense(q, k, v, causal_mask(24) if causal else None)
    errors = []
    for m in (64, 1024):
        found = torch.stack([performer_mix(q, k, v, rows(m, seed=s), causal=causal) for s in range(12)])
        errors.append(float((found - exact).square().mean().sqrt()))
    assert 0.6 < errors[0] / errors[1] / math.sqrt(16) < 1.7
    assert errors[1] < 0.1 * float(exact.square().mean().sqrt())


@pytest.mark.system(SLUG, "scaling")
@pytest.mark.system(SLUG)
def test_without_the_correction_it_estimates_another_kernel() -> None:
    """Erratum of S940 6.2: with q and k as they are, exp(q·k) comes out, further away than the noise."""
    q, k, v = (0.5 * x for x in qkv(24))
    exact, w = dense(q, k, v, None), rows(4096)
    root = q.shape[-1] ** 0.25
    wrong = performer_mix(q * root, k * root, v, w)
    right = performer_mix(q, k, v, w)
    assert (wrong - exact).square().mean() > 4 * (right - exact).square().mean()


@pytest.mark.system(SLUG, "cost")
@pytest.mark.system(SLUG)
def test_gradients_and_memory() -> None:
    inputs = [x.requires_grad_() for x in qkv(6, size=2)]
    w = rows(3, 2)
    for causal in (False, True):
        assert torch.autograd.gradcheck(lambda *x, c=causal: performer_mix(*x, w, None, c), inputs, fast_mode=True)
    short, long = (kept_for_backward(lambda *x: performer_mix(*x, rows(16).float()), qkv(t)) for t in (1024, 2048))
    assert long < 2.1 * short


@pytest.mark.system(SLUG, "module")
@pytest.mark.system(SLUG)
def test_module_takes_the_weights_of_full_attention() -> None:
    torch.manual_seed(0)
    full, attn = SelfAttention(16, 2), PerformerAttention(16, 2, features=2048)
    attn.load_state_dict({**full.state_dict(), "w": attn.w})
    x = torch.randn(2, 30, 16)
    for causal in (False, True):
        error = (attn(x, causal=causal) - full(x, causal=causal)).square().mean()
        assert error < 5e-3 * full(x, causal=causal).square().mean()
    keep = torch.ones(2, 1, 1, 30, dtype=torch.bool)
    keep[..., 20:] = False
    close(attn(x, keep)[:, :20], attn(x[:, :20]))
    before = attn.w.clone()
    attn.redraw(1)
    assert not torch.equal(attn.w, before)
    attn.redraw(0)
    assert torch.equal(attn.w, before)
    assert attn(100 * x).isfinite().all()
