"""The walkthroughs show the books' worked numbers, line by line; where a book erred, the right ones."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from descend.catalog.systems import examples
from descend.ops.backward.recurrent import states
from descend.ops.recurrent import RNN
from descend.tracing.examples import EXAMPLES
from descend.tracing.result import Trace, make_trace
from tests.close import close


@cache
def trace(name: str) -> Trace:
    return make_trace(EXAMPLES[name].fn, EXAMPLES[name].inputs)


def same(ours: Any, worked: str, key: str) -> None:
    """The books' values have ten digits."""
    assert ours is not None
    right = torch.tensor(examples()[worked].recomputed[key], dtype=torch.float64)
    close(torch.as_tensor(ours).squeeze(), right.squeeze(), loosen=100)


def test_every_walkthrough_agrees_with_autograd() -> None:
    for name in EXAMPLES:
        assert trace(name).gap < 1e-12, name


def test_2_3_1_of_vom() -> None:
    t = trace("2-3-1")
    for name in ("W1x", "z1", "h1", "z2", "y"):
        same(t.value(name), "VOM-5.2-mlp-forward", name)
    same(t.adjoint("z2"), "VOM-5.4.4-delta2", "delta2")
    same(t.jacobian("y", "z2"), "VOM-5.4.4-delta2", "sigma_prime")
    same(t.adjoint("W2"), "VOM-5.4.4-output-gradients", "dW2")
    same(t.adjoint("b2"), "VOM-5.4.4-output-gradients", "db2")
    same(t.adjoint("h1"), "VOM-5.4.4-hidden-error", "dh1")
    same(t.adjoint("z1"), "VOM-5.4.4-hidden-error", "delta1")
    mask = t.jacobian("h1", "z1")
    assert mask is not None
    same(mask.diagonal(), "VOM-5.4.4-hidden-error", "mask")
    same(t.adjoint("W1"), "VOM-5.4.4-hidden-gradients", "dW1")
    same(t.adjoint("b1"), "VOM-5.4.4-hidden-gradients", "db1")
    same(t.adjoint("z2"), "VOM-5.4.3-sign-slip", "first_version")  # the sign of the first version is wrong
    parameters = sum(t.value(name).numel() for name in ("W1", "b1", "W2", "b2"))
    assert parameters == examples()["VOM-5.2-mlp-forward"].recomputed["parameters"]
    forward = next(cost for cost in t.costs if cost.mode == "forward")
    assert forward.passes == parameters + 2  # MF-10.3.2: 13 passes for the parameters, and two for x


def test_2_3_1_of_mf() -> None:
    t = trace("2-3-1-bce")
    same(t.value("z1"), "MF-6.4.1-layer1", "z1")
    same(t.value("a1"), "MF-6.4.2-relu", "a1")
    same(t.value("z2"), "MF-6.4.3-layer2", "z2")
    same(t.value("y"), "MF-6.4.4-sigmoid", "yhat")
    same(t.result, "MF-6.4.5-loss1", "loss")
    same(t.adjoint("z2"), "MF-6.8.1-output-delta", "delta2")
    same(t.adjoint("W2"), "MF-6.8.2-gradW2", "gradW2_unrounded")
    same(t.adjoint("b2"), "MF-6.8.2-gradW2", "gradb2_unrounded")
    same(t.adjoint("z1"), "MF-6.8.3-hidden-delta", "delta1_unrounded")
    same(t.adjoint("W1"), "MF-6.8.4-gradW1", "gradW1_unrounded")


def test_lstm_cell_of_mf() -> None:
    t = trace("lstm-cell")
    for name in ("c1", "h1", "c2", "h2"):
        same(t.value(name), "MF-21.2.3-lstm-cell-gradient", name)
    same(t.adjoint("h1"), "MF-21.2.3-lstm-cell-gradient", "dh1_total")
    same(t.adjoint("c2"), "MF-21.2.3-lstm-cell-gradient", "dc2")
    same(t.adjoint("c1"), "MF-21.2.3-lstm-cell-gradient", "dc1_autograd")


def test_lstm_cell_is_torchs() -> None:
    cell = torch.nn.LSTMCell(2, 2, bias=False, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_ih.copy_(0.1 * torch.eye(2).double().repeat(4, 1))
        cell.weight_hh.copy_(0.1 * torch.eye(2).double().repeat(4, 1))
    h, c = cell(EXAMPLES["lstm-cell"].inputs[0])
    h2, c2 = cell(EXAMPLES["lstm-cell"].inputs[1], (h, c))
    close(trace("lstm-cell").value("h2"), h2)
    close(trace("lstm-cell").value("c2"), c2)


def test_attention_head_of_vom() -> None:
    t = trace("attention-head")
    for name in "QKV":
        same(t.value(name), "VOM-9.3-qkv", name)
    same(t.value("QKt"), "VOM-9.3-qkt", "QKt")
    same(t.value("S"), "VOM-9.3-scores", "S")
    same(t.value("A"), "VOM-9.3-attention", "A")
    same(t.value("H"), "VOM-9.3-output", "O")
    steps = {"A": "dA", "V": "dV", "S": "dS", "Q": "dQ", "K": "dK", "WQ": "dWQ", "X": "dX"}
    for name, key in steps.items():
        same(t.adjoint(name), "VOM-12.4.6-attention-grad", key)


def test_convolution_of_dld() -> None:
    t = trace("convolution")
    same(t.value("y"), "DLD-4.3-toeplitz", "y")
    same(t.jacobian("y", "image"), "DLD-4.3-toeplitz", "T")
    toeplitz = torch.tensor(examples()["DLD-4.3-toeplitz"].recomputed["T"], dtype=torch.float64)
    close(t.adjoint("x"), toeplitz.T @ t.value("y").flatten())


def unrolled(x1: torch.Tensor, x2: torch.Tensor, x3: torch.Tensor, Wh: torch.Tensor, Wx: torch.Tensor) -> torch.Tensor:
    h1 = (Wx @ x1).tanh()
    h2 = (Wh @ h1 + Wx @ x2).tanh()
    h3 = (Wh @ h2 + Wx @ x3).tanh()
    loss = h3.sum()
    return loss


@pytest.mark.system("rnn-unfolding", "graph")
def test_an_unrolled_net() -> None:
    """Every step is a node with its value and adjoint; the adjoint of W_hh has a part of each step."""
    random = torch.Generator().manual_seed(0)
    x = [torch.randn(2, generator=random, dtype=torch.float64) for _ in range(3)]
    w_h, w_x = (torch.randn(3, n, generator=random, dtype=torch.float64) for n in (3, 2))
    t = make_trace(unrolled, [*x, w_h, w_x])
    h = states(torch.stack(x), torch.zeros(3).double(), RNN(w_h, w_x, torch.zeros(3).double()))
    for name, state in zip(("h1", "h2", "h3"), h, strict=True):
        close(t.value(name), state)
    slopes = 1 - h.square()
    delta_3 = slopes[2]
    delta_2 = slopes[1] * (w_h.T @ delta_3)
    close(t.adjoint("h2"), w_h.T @ delta_3)
    close(t.adjoint("Wh"), torch.outer(delta_3, h[1]) + torch.outer(delta_2, h[0]))
    assert t.gap < 1e-12
