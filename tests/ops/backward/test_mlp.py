"""The delta recursion in both layouts against autograd, finite differences and the errata."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from descend.ops.backward.mlp import (
    ACTIVATIONS,
    backward_columns,
    backward_rows,
    denominator_jacobian,
    forward_columns,
    forward_rows,
    numerator_jacobian,
    output_delta,
    softmax_output_delta,
    two_layer_gradients,
)
from tests.close import close

pytestmark = pytest.mark.system("mlp-backpropagation")


def network(widths: list[int], seed: int) -> tuple[list[Tensor], list[Tensor]]:
    random = torch.Generator().manual_seed(seed)
    pairs = list(zip(widths[1:], widths[:-1], strict=True))
    weights = [torch.randn(o, i, generator=random, dtype=torch.float64).requires_grad_() for o, i in pairs]
    return weights, [torch.randn(o, generator=random, dtype=torch.float64).requires_grad_() for o, _ in pairs]


def batch(n: int, m: int) -> Tensor:
    return torch.randn(n, m, generator=torch.Generator().manual_seed(9), dtype=torch.float64).requires_grad_()


def test_delta_rules_of_dln() -> None:
    """DLN-Backprop-delta-rules: 3-4-2, tanh then sigmoid, sum of squares; the difference to autograd is rounding."""
    weights, biases = network([3, 4, 2], seed=1)
    x = batch(3, 1)
    a, steps = forward_columns(x, weights, biases, ["tanh", "sigmoid"])
    found = backward_columns(steps, weights, output_delta(steps[-1], 2 * (a - 0.3)))
    theirs = torch.autograd.grad((a - 0.3).square().sum(), [*weights, *biases, x])
    for ours, oracle in zip([*found.weights, *found.biases, found.x], theirs, strict=True):
        assert (ours - oracle).abs().max() < 1e-14
        close(ours, oracle)


@pytest.mark.system("mlp-backpropagation", "any-network", "both-layouts")
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4),
    st.integers(1, 5),
    st.lists(st.sampled_from(sorted(ACTIVATIONS)), min_size=3, max_size=3),
)
def test_both_layouts_for_any_network(widths: list[int], m: int, names: list[str]) -> None:
    weights, biases = network(widths, seed=2)
    names, x = names[: len(weights)], batch(widths[0], m)
    a, steps = forward_columns(x, weights, biases, names)
    y = torch.linspace(-1, 1, a.numel(), dtype=torch.float64).view_as(a)
    columns = backward_columns(steps, weights, output_delta(steps[-1], a - y))
    theirs = torch.autograd.grad((a - y).square().sum() / 2 / m, [*weights, *biases, x], retain_graph=True)
    for ours, oracle in zip([*columns.weights, *columns.biases, columns.x], theirs, strict=True):
        torch.testing.assert_close(ours, oracle, rtol=1e-9, atol=1e-12)
    b, row_steps = forward_rows(x.T, weights, biases, names)
    rows = backward_rows(row_steps, weights, output_delta(row_steps[-1], b - y.T))
    torch.testing.assert_close(b, a.T)
    for p, q in zip([*columns.weights, *columns.biases], [*rows.weights, *rows.biases], strict=True):
        torch.testing.assert_close(p, q)
    for p, q in zip([*columns.deltas, columns.x], [*rows.deltas, rows.x], strict=True):
        torch.testing.assert_close(p, q.T)


@pytest.mark.system("mlp-backpropagation", "batch-form")
def test_the_batch_is_the_mean_over_examples_taken_once() -> None:
    """MF (5.17) with (5.20) averages twice; the mean of the single gradients is the truth."""
    weights, biases = network([2, 3, 1], seed=3)
    x, y = batch(2, 4), torch.tensor([[0.0, 1.0, 0.0, 1.0]], dtype=torch.float64)
    a, steps = forward_columns(x, weights, biases, ["relu", "sigmoid"])
    whole = backward_columns(steps, weights, a - y)
    singles = []
    for j in range(4):
        part, part_steps = forward_columns(x[:, j : j + 1], weights, biases, ["relu", "sigmoid"])
        singles.append(backward_columns(part_steps, weights, part - y[:, j : j + 1]).weights[0])
    close(whole.weights[0], torch.stack(singles).mean(0))
    loss = F.binary_cross_entropy(a, y)
    close(whole.weights[1], torch.autograd.grad(loss, weights[1], retain_graph=True)[0])
    twice = backward_columns(steps, weights, (a - y) / 4).weights[1]
    close(twice * 4, torch.autograd.grad(loss, weights[1])[0])


@pytest.mark.system("mlp-backpropagation", "softmax-output")
def test_softmax_needs_its_jacobian() -> None:
    """MF (5.6), elementwise, is wrong for softmax; the Jacobian gives p − y."""
    z = batch(3, 4)
    y = F.one_hot(torch.tensor([0, 2, 1, 1]), 3).double().T
    p = z.softmax(0)
    close(softmax_output_delta(z, -y / p), p - y)
    assert not torch.allclose(-y / p * p * (1 - p), p - y, atol=0.01)


@pytest.mark.system("mlp-backpropagation", "two-layer-closed-form")
def test_two_layer_relu_network_of_s940() -> None:
    (w1, w2), (b1, b2) = network([2, 5, 1], seed=4)
    x, y = batch(2, 1)[:, 0], torch.tensor(1.0, dtype=torch.float64)
    found = two_layer_gradients(x, y, w1, b1, w2[0], b2[0])
    theirs = torch.autograd.grad(found.loss, [w1, b1, w2, b2])
    for ours, oracle in zip((found.w1, found.delta, found.w2[None], found.delta_out[None]), theirs, strict=True):
        close(ours, oracle)


@pytest.mark.system("mlp-backpropagation", "any-network")
def test_finite_differences() -> None:
    weights, biases = network([2, 3, 2], seed=5)
    x = batch(2, 3)

    class Net(torch.autograd.Function):
        @staticmethod
        def forward(ctx, w1, w2):  # type: ignore[no-untyped-def]
            a, ctx.steps = forward_columns(x, [w1, w2], biases, ["tanh", "sigmoid"])
            ctx.weights, ctx.a = [w1, w2], a
            return a.square().sum() / 2 / 3

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            delta = output_delta(ctx.steps[-1], ctx.a)
            return tuple(g * w for w in backward_columns(ctx.steps, ctx.weights, delta).weights)

    with torch.no_grad():
        x = x.detach()
        biases = [b.detach() for b in biases]
    assert torch.autograd.gradcheck(Net.apply, weights)


@pytest.mark.system("mlp-backpropagation", "both-layouts")
def test_layouts_of_a_jacobian() -> None:
    """Chain rule: numerator layout multiplies from the left, denominator layout in reversed order."""
    w, v = batch(2, 3).detach(), batch(4, 2).detach()
    x = torch.arange(3, dtype=torch.float64)
    inner, outer = (lambda t: (w @ t).tanh()), (lambda t: (v @ t).sin())
    both = numerator_jacobian(lambda t: outer(inner(t)), x)
    assert both.shape == (4, 3)
    close(both, numerator_jacobian(outer, inner(x)) @ numerator_jacobian(inner, x))
    close(both.T, denominator_jacobian(inner, x) @ denominator_jacobian(outer, inner(x)))
