"""Backward rules of the layers against autograd, gradcheck and the entries' properties."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from descend.ops.backward.layers import (
    cross_entropy_backward,
    embedding_backward,
    layer_norm_backward,
    layer_norm_outside_backward,
    linear_backward,
    probability_adjoint,
    relu_backward,
    residual_backward,
    softmax_backward,
)
from tests.close import close

pytestmark = pytest.mark.system("layer-backward-rules")


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def autograd(y: Tensor, g: Tensor, *leaves: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((y * g).sum(), leaves)


@pytest.mark.system("layer-backward-rules", "linear-relu-residual")
@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 3), max_size=3), st.integers(1, 4), st.integers(1, 4))
def test_linear_for_any_leading_axes(leading: list[int], i: int, o: int) -> None:
    x, w, b = (t.requires_grad_() for t in (normal(*leading, i), normal(i, o, seed=1), normal(o, seed=2)))
    g = normal(*leading, o, seed=3)
    for ours, theirs in zip(linear_backward(x, w, g), autograd(x @ w + b, g, x, w, b), strict=True):
        close(ours, theirs)


@pytest.mark.system("layer-backward-rules", "linear-relu-residual")
def test_relu_is_zero_at_zero() -> None:
    x = torch.tensor([-1.0, -0.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    g = normal(4)
    close(relu_backward(x, g), autograd(x.relu(), g, x)[0])
    assert relu_backward(torch.zeros(1), torch.ones(1)).item() == 0


@pytest.mark.system("layer-backward-rules", "linear-relu-residual")
def test_residual_gives_both_branches_everything() -> None:
    x, z, g = normal(2, 3).requires_grad_(), normal(2, 3, seed=1).requires_grad_(), normal(2, 3, seed=2)
    for ours, theirs in zip(residual_backward(g), autograd(x + z, g, x, z), strict=True):
        close(ours, theirs)


@pytest.mark.system("layer-backward-rules", "embedding")
def test_embedding_accumulates_repeated_tokens() -> None:
    table = normal(6, 3).requires_grad_()
    tokens, g = torch.tensor([[4, 1, 0], [3, 1, 1]]), normal(2, 3, 3, seed=1)
    ours = embedding_backward(tokens, g, 6)
    close(ours, autograd(table[tokens], g, table)[0])
    close(ours, F.one_hot(tokens, 6).double().flatten(0, 1).T @ g.flatten(0, 1))
    assert not ours[[2, 5]].any()


@pytest.mark.system("layer-backward-rules", "softmax")
@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=6))
def test_softmax_rule_is_the_jacobian(z: list[float]) -> None:
    x = torch.tensor(z, dtype=torch.float64)
    p, p_bar = x.softmax(-1), normal(len(z))
    j = p.diag() - torch.outer(p, p)
    torch.testing.assert_close(softmax_backward(p, p_bar), j.T @ p_bar, rtol=1e-9, atol=1e-12)
    assert abs(softmax_backward(p, p_bar).sum().item()) < 1e-12


@pytest.mark.system("layer-backward-rules", "softmax", "cross-entropy")
def test_cross_entropy_and_the_erratum_of_mf() -> None:
    """p̄ = −y/p makes the softmax rule give p − y; the printed p̄ = p − y does not."""
    z, y = normal(5, 4).requires_grad_(), torch.tensor([0, 3, 1, 1, 2])
    ours = cross_entropy_backward(z, y)
    close(ours, autograd(F.cross_entropy(z, y), torch.ones((), dtype=torch.float64), z)[0])
    torch.testing.assert_close(ours.sum(-1), torch.zeros(5, dtype=torch.float64), atol=1e-15, rtol=0)
    p, hot = z.softmax(-1), F.one_hot(y, 4).double()
    close(softmax_backward(p, probability_adjoint(p, hot)) / 5, ours)
    assert not torch.allclose(softmax_backward(p, p - hot) / 5, ours, atol=1e-3)


@pytest.mark.system("layer-backward-rules", "layer-norm")
@pytest.mark.parametrize("eps", [1e-6, 0.3])
def test_layer_norm_with_eps_inside_and_outside(eps: float) -> None:
    x, gamma, beta = (t.requires_grad_() for t in (normal(2, 3, 5), normal(5, seed=1), normal(5, seed=2)))
    g = normal(2, 3, 5, seed=3)
    inside = F.layer_norm(x, (5,), gamma, beta, eps)
    mu, sigma = x.mean(-1, keepdim=True), x.std(-1, keepdim=True, unbiased=False)
    outside = gamma * (x - mu) / (sigma + eps) + beta
    for rule, y in ((layer_norm_backward, inside), (layer_norm_outside_backward, outside)):
        for ours, theirs in zip(rule(x, gamma, g, eps), autograd(y, g, x, gamma, beta), strict=True):
            close(ours, theirs)
    if eps > 0.1:  # the two forms need two rules
        one, other = (rule(x, gamma, g, eps)[0] for rule in (layer_norm_backward, layer_norm_outside_backward))
        assert not torch.allclose(one, other, rtol=0.01)


def test_rules_pass_gradcheck_as_functions() -> None:
    """Each rule as the backward of an autograd function, against finite differences of its forward."""

    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, gamma, beta):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x, gamma)
            return F.layer_norm(x, x.shape[-1:], gamma, beta, 1e-5)

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return layer_norm_backward(*ctx.saved_tensors, g, 1e-5)

    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(p := z.softmax(-1))
            return p

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return softmax_backward(*ctx.saved_tensors, g)

    leaves = [t.requires_grad_() for t in (normal(2, 4), normal(4, seed=1), normal(4, seed=2))]
    assert torch.autograd.gradcheck(Norm.apply, leaves)
    assert torch.autograd.gradcheck(Softmax.apply, (leaves[0],))
