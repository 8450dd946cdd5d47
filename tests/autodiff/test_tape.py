"""The tape against torch's autograd; it trains a network."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.autodiff.primitives import EXP, LOG_SOFTMAX, MEAN, RELU, SIGMOID, SIN, SUM, TANH
from descend.autodiff.tape import Value, forward_graph, reverse_graph
from descend.errors import Mistake
from tests.close import close

pytestmark = pytest.mark.system("reverse-mode-autodiff")
UNARY = {TANH: torch.tanh, SIN: torch.sin, SIGMOID: torch.sigmoid, EXP: lambda x: (0.1 * x).exp(), RELU: torch.relu}


@pytest.mark.system("reverse-mode-autodiff", "fan-out")
def test_the_adjoints_of_mf() -> None:
    """L = y², y = (x₁ + x₂) x₁ at (2, 3): 140 = 100 + 40, and 40."""
    x1, x2 = Value(2, requires_grad=True), Value(3, requires_grad=True)
    v3 = x1 + x2
    y = v3 * x1
    (y**2).backward()
    assert [v.grad.item() for v in (y, v3, x1, x2) if v.grad is not None] == [20, 40, 140, 40]


@pytest.mark.system("reverse-mode-autodiff", "fan-out")
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=8))
def test_random_expressions(program: list[tuple[int, int, int]]) -> None:
    """A random straight-line program with fan-out, on the tape and in torch."""
    start = torch.tensor([[0.3, -0.7], [1.1, 0.2]], dtype=torch.float64)
    leaf = start.clone().requires_grad_()
    ours: list[Any] = [Value(start, requires_grad=True)]
    theirs = [leaf]
    for kind, i, j in program:
        a, b, c, d = ours[i % len(ours)], ours[j % len(ours)], theirs[i % len(theirs)], theirs[j % len(theirs)]
        if kind < 3:
            ours.append((a + b, a * b * 0.5, a @ b)[kind])
            theirs.append((c + d, c * d * 0.5, c @ d)[kind])
        else:
            ours.append((TANH(a), SIN(a))[kind - 3])
            theirs.append((c.tanh(), c.sin())[kind - 3])
    SUM(ours[-1]).backward()
    expected = torch.autograd.grad(theirs[-1].sum(), leaf, allow_unused=True)[0]
    if expected is None:
        assert ours[0].grad is None
    else:
        torch.testing.assert_close(ours[0].grad, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.system("reverse-mode-autodiff", "tape", "both-graphs-printed")
def test_names_and_what_is_not_tracked() -> None:
    x, c = Value(2.0, requires_grad=True), Value(3.0)
    free = c * c
    y = x * free + c
    y.backward()
    assert str(y.grad_fn) == "AddBackward"
    assert free.grad_fn is None
    assert free.grad is None
    assert c.grad is None
    assert x.grad is not None
    assert x.grad.item() == 9
    assert "grad_fn=AddBackward" in repr(y)
    assert forward_graph(y) == "v1: leaf\nv2 = mul(v1, 9.0)\nv3 = add(v2, 3.0)"
    assert reverse_graph(y) == "v3: AddBackward -> v2\nv2: MulBackward -> v1\nv1: AccumulateGrad"


def test_gradients_of_leaves_add_up_over_passes() -> None:
    x = Value(3.0, requires_grad=True)
    for _ in range(2):
        (x * x).backward()
    assert x.grad is not None
    assert x.grad.item() == 12


def test_a_long_chain_does_not_recurse() -> None:
    x = Value(0.0, requires_grad=True)
    y = x
    for _ in range(3000):
        y = y + 1
    y.backward()
    assert x.grad is not None
    assert x.grad.item() == 1


def test_mistakes() -> None:
    with pytest.raises(Mistake, match=r"shape \(2,\); reduce it"):
        Value([1.0, 2.0], requires_grad=True).backward()
    with pytest.raises(Mistake, match="requires_grad=True"):
        Value(1.0).backward()


@pytest.mark.system("reverse-mode-autodiff", "trains-mlp")
def test_it_trains_a_network() -> None:
    """Two interleaved classes that no line separates: all of them right after training, from the tape alone."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(60, 2, generator=random, dtype=torch.float64)
    y = torch.nn.functional.one_hot((x.prod(dim=1) > 0).long(), 2).double()
    w1, w2 = (torch.randn(s, generator=random, dtype=torch.float64) for s in ((2, 16), (16, 2)))
    parameters = [Value(w, requires_grad=True) for w in (w1, torch.zeros(16).double(), w2, torch.zeros(2).double())]
    losses = []
    for _ in range(250):
        w1_, b1, w2_, b2 = parameters
        logits = TANH(Value(x) @ w1_ + b1) @ w2_ + b2
        loss = MEAN(LOG_SOFTMAX(logits) * Value(-2 * y))
        loss.backward()
        losses.append(loss.data.item())
        for p in parameters:
            assert p.grad is not None
            p.data, p.grad = p.data - 1.0 * p.grad, None
    assert losses[-1] < 0.1 * losses[0]
    assert (logits.data.argmax(1) == y.argmax(1)).all()


@pytest.mark.system("reverse-mode-autodiff", "trains-mlp")
def test_mlp_gradients_equal_torchs() -> None:
    random = torch.Generator().manual_seed(1)
    x, *tensors = (torch.randn(s, generator=random, dtype=torch.float64) for s in ((5, 3), (3, 4), (4,), (4, 2)))
    ours = [Value(t, requires_grad=True) for t in tensors]
    theirs = [t.clone().requires_grad_() for t in tensors]
    w1, b, w2 = ours
    MEAN((RELU(Value(x) @ w1 + b) @ w2) ** 2).backward()
    p, q, r = theirs
    ((x @ p + q).relu() @ r).square().mean().backward()
    for a, t in zip(ours, theirs, strict=True):
        close(a.grad, t.grad)
