"""Backpropagation through time, written out, against autograd."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from descend.ops.backward.recurrent import (
    lstm_backward,
    lstm_states,
    output_backward,
    product,
    relu_slope,
    rnn_backward,
    states,
    step_jacobians,
    tanh_slope,
)
from descend.ops.recurrent import RNN, Gates, Memory, lstm, readout, unroll
from tests.close import close

D, H, T, B = 3, 4, 7, 2


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64)


def net() -> RNN:
    return RNN(*(p.requires_grad_() for p in (drawn(H, H) / 2, drawn(H, D), drawn(H))))


COSTS: dict[str, Any] = {
    "softmax": (2, lambda z, y: F.cross_entropy(z.flatten(0, -2), y.flatten(), reduction="sum"),
                lambda z, y: z.softmax(-1) - F.one_hot(y, 2)),
    "sigmoid": (1, lambda z, y: F.binary_cross_entropy_with_logits(z[..., 0], y.double(), reduction="sum"),
                lambda z, y: z.sigmoid() - y[..., None]),
    "squares": (1, lambda z, y: 0.5 * (z[..., 0] - y).square().sum(), lambda z, y: z - y[..., None]),
}  # fmt: skip


@pytest.mark.system("vanilla-rnn", "outputs")
@pytest.mark.system("bptt")
@pytest.mark.system("bptt", "hand-written")
@pytest.mark.parametrize(("activation", "slope"), [(torch.tanh, tanh_slope), (torch.relu, relu_slope)])
@pytest.mark.parametrize("cost", list(COSTS))
def test_bptt_is_autograd(cost: str, activation: Any, slope: Any) -> None:
    outputs, loss, delta = COSTS[cost]
    w, w_hy, b_y = net(), drawn(outputs, H).requires_grad_(), drawn(outputs).requires_grad_()
    x, h_0 = drawn(B, T, D), drawn(B, H)
    y = torch.randint(2, (B, T), generator=torch.Generator().manual_seed(0))
    h = states(x, h_0, w, activation)
    z = readout(h, w_hy, b_y)
    expected = torch.autograd.grad(loss(z, y), [*w, w_hy, b_y])
    g, dw_hy, db_y = output_backward(h, w_hy, delta(z, y).detach())
    back = rnn_backward(x, h_0, h, w, g, slope)
    for ours, theirs in zip((back.w_hh, back.w_xh, back.b_h, dw_hy, db_y), expected, strict=True):
        close(ours, theirs)


@pytest.mark.system("bptt")
@pytest.mark.system("bptt", "by-step")
@pytest.mark.system("rnn-unfolding")
@pytest.mark.system("rnn-unfolding", "shared-gradient")
def test_the_shared_gradient_is_the_sum_of_untied_copies() -> None:
    """VOM: dL/dW = Σ_t of each step's own part; copy t of the weight gets exactly that part."""
    w, x, zero = net(), drawn(T, D), torch.zeros(H).double()
    h = states(x, zero, w)
    back = rnn_backward(x, zero, h.detach(), w, torch.ones(T, H).double())
    copies = [w.w_hh.detach().clone().requires_grad_() for _ in range(T)]
    state, total = zero, torch.zeros(()).double()
    for t in range(T):
        state = (state @ copies[t].T + x[t] @ w.w_xh.T + w.b_h).tanh()
        total = total + state.sum()
    total.backward()
    parts = [c.grad for c in copies if c.grad is not None]
    close(torch.stack(parts).sum(0), back.w_hh)
    assert (parts[0] == 0).all()  # h_0 = 0
    for t in range(1, T):
        close(parts[t], torch.outer(back.delta_h[t], h[t - 1]))


@pytest.mark.system("truncated-bptt")
@pytest.mark.system("truncated-bptt", "full", "cut")
@pytest.mark.parametrize("tau", [1, 2, 3, T, 50])
def test_truncated(tau: int) -> None:
    """As autograd has it when the state between windows is a constant; τ ≥ T is the whole gradient."""
    w, x, zero = net(), drawn(T, D), torch.zeros(H).double()
    h = states(x, zero, w).detach()
    back = rnn_backward(x, zero, h, w, torch.ones(T, H).double(), tau=tau)
    state, total = zero, torch.zeros(()).double()
    for start in range(0, T, tau):
        part = states(x[start : start + tau], state.detach(), w)
        state, total = part[-1], total + part.sum()
    for ours, theirs in zip((back.w_hh, back.w_xh, back.b_h), torch.autograd.grad(total, list(w)), strict=True):
        close(ours, theirs)
    whole = rnn_backward(x, zero, h, w, torch.ones(T, H).double())
    assert torch.equal(back.w_hh, whole.w_hh) is (tau >= T)


@pytest.mark.system("bptt")
@pytest.mark.system("bptt", "jacobians")
@pytest.mark.system("vanishing-exploding-in-time")
@pytest.mark.system("vanishing-exploding-in-time", "bound")
def test_the_product_of_jacobians() -> None:
    w, x, h_0 = net(), drawn(T, D), drawn(H)
    h = states(x, h_0, w)
    found = product(step_jacobians(h.detach(), w.w_hh.detach()))
    close(found, torch.autograd.functional.jacobian(lambda s: states(x, s, w)[-1], h_0))


@pytest.mark.system("lstm-backward")
@pytest.mark.system("lstm-backward", "parameters", "cell", "start")
def test_lstm_backward_is_autograd() -> None:
    w = Gates(drawn(4 * H, H + D).requires_grad_(), drawn(4 * H).requires_grad_())
    x, start = drawn(B, T, D), Memory(drawn(B, H).requires_grad_(), drawn(B, H, seed=9).requires_grad_())
    found = unroll(lambda x_t, s: lstm(x_t, s, w), x, start)
    g = drawn(B, T, H)
    loss = (torch.stack([s.h for s in found], dim=1) * g).sum()
    expected = torch.autograd.grad(loss, [w.w, w.b, start.h, start.c, *(s.c for s in found)])
    with torch.no_grad():
        back = lstm_backward(x, start, lstm_states(x, start, w), w, g)
    for ours, theirs in zip((back.w, back.b, back.h_0, back.c_0), expected[:4], strict=True):
        close(ours, theirs)
    close(back.c, torch.stack(expected[4:], dim=1))


@pytest.mark.system("bptt", "update", "differences")
def test_the_walkthrough_by_finite_differences_and_its_update() -> None:
    """MF 21.1: the hand-written gradient is the slope of the loss, and one step of 0.1 lowers it; y₃ rises to 1."""
    rows = ([[0.1, 0.2, 0.3], [0.4, 0.1, 0.2], [0.2, 0.3, 0.1]], [[0.5, 0.6], [0.3, 0.4], [0.2, 0.1]], [0.1, 0.0, 0.1])
    w = RNN(*(torch.tensor(part).double() for part in rows))
    w_hy, b_y = torch.tensor([[0.7, 0.5, 0.3]]).double(), torch.tensor([0.05]).double()
    x, zero = torch.tensor([[0.5, 0.2], [0.3, 0.4], [0.2, 0.5]]).double(), torch.zeros(3).double()

    def output(w: RNN, w_hy: Tensor, b_y: Tensor) -> Tensor:
        return readout(states(x, zero, w)[-1], w_hy, b_y).sigmoid()[0]

    def cost(w: RNN) -> float:
        return float(-output(w, w_hy, b_y).log())

    y = output(w, w_hy, b_y)
    close(torch.stack([y, -y.log()]), torch.tensor([0.710975, 0.341118]).double(), loosen=1e6)
    h = states(x, zero, w)
    delta = torch.zeros(3, 1).double()
    delta[-1] = y - 1
    g, dw_hy, db_y = output_backward(h, w_hy, delta)
    back = rnn_backward(x, zero, h, w, g)
    for k, found in enumerate((back.w_hh, back.w_xh, back.b_h)):
        for place in range(found.numel()):
            shift = torch.zeros(found.numel()).double()
            shift[place] = 1e-5
            moved = [cost(RNN(*(p + s * shift.view_as(p) if i == k else p for i, p in enumerate(w)))) for s in (1, -1)]
            assert float(found.flatten()[place]) == pytest.approx((moved[0] - moved[1]) / 2e-5, abs=1e-9)
    updated = RNN(w.w_hh - 0.1 * back.w_hh, w.w_xh - 0.1 * back.w_xh, w.b_h - 0.1 * back.b_h)
    after = output(updated, w_hy - 0.1 * dw_hy, b_y - 0.1 * db_y)
    assert y < after < 1
    squares = sum(float(part.square().sum()) for part in (back.w_hh, back.w_xh, back.b_h, dw_hy, db_y))
    assert float(y.log() - after.log()) == pytest.approx(-0.1 * squares, rel=0.1)  # to first order −η ‖∇L‖²
