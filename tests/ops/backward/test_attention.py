"""Attention's backward pass against autograd, with T ≠ d_k, masks, cross-attention and several heads."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.ops.attention.dot_product import attention, causal_mask, padding_mask
from descend.ops.backward.attention import attention_backward, merge, multi_head, multi_head_backward, split
from tests.close import close

pytestmark = pytest.mark.system("attention-backward")


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


@pytest.mark.system("attention-backward", "one-layout", "masks")
@pytest.mark.parametrize(("t", "s", "k", "v"), [(3, 5, 2, 4), (4, 4, 4, 4), (1, 3, 7, 2)])
def test_one_head(t: int, s: int, k: int, v: int) -> None:
    q, key, value = normal(2, t, k, seed=0), normal(2, s, k, seed=1), normal(2, s, v, seed=2)
    g = normal(2, t, v, seed=3).detach()
    out, a = attention(q, key, value)
    found = attention_backward(q, key, value, a, g)
    theirs = torch.autograd.grad((out * g).sum(), (q, key, value, a))
    for ours, oracle in zip(found[:4], theirs, strict=True):
        close(ours, oracle)
    assert found.s.sum(-1).abs().max() < 1e-12
    fast = F.scaled_dot_product_attention(q, key, value)
    for ours, oracle in zip(found[:3], torch.autograd.grad((fast * g).sum(), (q, key, value)), strict=True):
        close(ours, oracle)


@pytest.mark.system("attention-backward", "masks")
def test_masked_entries_have_no_gradient() -> None:
    q, k, v = (normal(1, 1, 4, 3, seed=i) for i in range(3))
    mask = causal_mask(4) & padding_mask(torch.tensor([3]), 4)
    out, a = attention(q, k, v, mask)
    g = normal(1, 1, 4, 3, seed=4).detach()
    found = attention_backward(q, k, v, a, g)
    assert not found.s[~mask].any()
    assert not found.v[:, :, 3].any()
    for ours, oracle in zip(found[:3], torch.autograd.grad((out * g).sum(), (q, k, v)), strict=True):
        close(ours, oracle)


@pytest.mark.system("attention-backward", "scaled-scores")
def test_step_4_needs_the_unscaled_scores() -> None:
    """VOM 12.4.6: with the gradient of the scaled scores dQ is off by √d_k."""
    q, k, v = (normal(3, 4, seed=i) for i in range(3))
    out, a = attention(q, k, v)
    found = attention_backward(q, k, v, a, torch.ones(3, 4, dtype=torch.float64))
    dq = torch.autograd.grad(out.sum(), q)[0]
    close(found.s @ k, 2 * dq)


@pytest.mark.system("attention-backward", "multi-head", "cross-attention")
@pytest.mark.parametrize("cross", [False, True])
def test_multi_head_with_projections(cross: bool) -> None:
    x = normal(2, 3, 6, seed=0)
    memory = normal(2, 5, 6, seed=1) if cross else x
    w = tuple(normal(6, 6, seed=i) for i in range(2, 6))
    g = normal(2, 3, 6, seed=7).detach()
    mask = None if cross else causal_mask(3)
    out, kept = multi_head(x, memory, w, 3, mask)  # type: ignore[arg-type]
    from_q, from_k, found = multi_head_backward(kept, w, g)  # type: ignore[arg-type]
    theirs = torch.autograd.grad((out * g).sum(), (x, memory, *w) if cross else (x, *w))
    ours = (from_q, from_k, *found) if cross else (from_q + from_k, *found)
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)


def test_multi_head_is_torchs() -> None:
    x, w = normal(2, 3, 6, seed=0), tuple(normal(6, 6, seed=i) for i in range(1, 5))
    layer = torch.nn.MultiheadAttention(6, 3, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([m.T for m in w[:3]]))
        layer.out_proj.weight.copy_(w[3].T)
    close(multi_head(x, x, w, 3)[0], layer(x, x, x)[0])  # type: ignore[arg-type]


def test_split_and_merge_are_inverse() -> None:
    x = normal(2, 3, 8, seed=0)
    assert split(x, 4).shape == (2, 4, 3, 2)
    close(merge(split(x, 4)), x)
