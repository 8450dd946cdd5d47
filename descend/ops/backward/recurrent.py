"""Backpropagation through time, by hand: the vanilla RNN and the LSTM.

    L = Σ_t L⁽ᵗ⁾                                                       the SUM over the steps, not the mean
    δ_y⁽ᵗ⁾ = ∂L⁽ᵗ⁾/∂z_y⁽ᵗ⁾                                             ŷ - y for softmax, sigmoid and ½ (ŷ - y)²
    δ_h⁽ᵗ⁾ = (W_hyᵀ δ_y⁽ᵗ⁾ + W_hhᵀ δ_h⁽ᵗ⁺¹⁾) ⊙ σ_h'(z_h⁽ᵗ⁾),  δ_h⁽ᵀ⁺¹⁾ = 0
    dW_hh = Σ_t δ_h⁽ᵗ⁾ h⁽ᵗ⁻¹⁾ᵀ    dW_xh = Σ_t δ_h⁽ᵗ⁾ x⁽ᵗ⁾ᵀ    dW_hy = Σ_t δ_y⁽ᵗ⁾ h⁽ᵗ⁾ᵀ    db_h = Σ δ_h    db_y = Σ δ_y
    ∂h⁽ᵀ⁾/∂h⁽¹⁾ = Π_{t=T..2} diag(σ_h'(z⁽ᵗ⁾)) W_hh                     T - 1 factors, the latest on the left

    truncated: the sequence is cut into windows of τ steps and δ_h⁽ᵗ⁺¹⁾ = 0 at the end of each; the state is carried on.
    At most τ states are kept at a time. τ ≥ T is the whole of it.

    LSTM, dh the TOTAL gradient (the step's own loss and the gates of the step after it):
    dc_t = dh_t ⊙ o_t ⊙ (1 - tanh² c_t) + dc_{t+1} ⊙ f_{t+1}
    do = dh tanh(c) o (1 - o)   df = dc c_{t-1} f (1 - f)   di = dc c̃ i (1 - i)   dc̃ = dc i (1 - c̃²)
    the rows of dW are Σ_t (df, di, do, dc̃)_t [h_{t-1}; x_t]ᵀ

Sequences are (t, d), or (b, t, d) with gradients summed over the batch. Errata: the numbers of MF 21.1 are wrong from
its second step on (y⁽³⁾ is 0.710975, L is 0.341118); MF gives no procedure for truncation and no gate deltas.

Systems: bptt, truncated-bptt, lstm-backward
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from descend.ops.recurrent import RNN, Gates, Memory, Opened, lstm_opened, rnn, unroll


def tanh_slope(h: Tensor) -> Tensor:
    """σ_h' = 1 - h², from the state"""
    return 1 - h.square()


def relu_slope(h: Tensor) -> Tensor:
    """1 where the unit is on, from the state"""
    return (h > 0).to(h.dtype)


class Passed(NamedTuple):
    """What the backward pass of an RNN gives."""

    delta_h: Tensor
    """δ_h⁽ᵗ⁾ (…, t, h): at the preactivation of each step"""
    upstream: Tensor
    """what arrives at h⁽ᵗ⁾, before the slope (…, t, h)"""
    w_hh: Tensor
    w_xh: Tensor
    b_h: Tensor


def delay(h: Tensor, h_0: Tensor) -> Tensor:
    """h⁽ᵗ⁻¹⁾ at every t: (…, t, h)"""
    return torch.cat([h_0.unsqueeze(-2), h[..., :-1, :]], dim=-2)


def states(x: Tensor, h_0: Tensor, w: RNN, activation: Callable[[Tensor], Tensor] = torch.tanh) -> Tensor:
    """h⁽¹⁾ … h⁽ᵀ⁾: (…, t, d) -> (…, t, h)"""
    return torch.stack(unroll(lambda x_t, h: rnn(x_t, h, w, activation), x, h_0), dim=-2)


def rnn_backward(
    x: Tensor,
    h_0: Tensor,
    h: Tensor,
    w: RNN,
    g: Tensor,
    slope: Callable[[Tensor], Tensor] = tanh_slope,
    tau: int | None = None,
) -> Passed:
    """From g (…, t, h), the gradient that each h⁽ᵗ⁾ gets from its own step; τ cuts the recursion into windows."""
    steps, slopes = x.shape[-2], slope(h)
    tau = steps if tau is None else tau
    delta, deltas, arrived = torch.zeros_like(h_0), [], []
    for t in reversed(range(steps)):
        if (t + 1) % tau == 0:
            delta = torch.zeros_like(delta)
        upstream = g[..., t, :] + delta @ w.w_hh
        delta = upstream * slopes[..., t, :]
        arrived.append(upstream)
        deltas.append(delta)
    delta_h = torch.stack(deltas[::-1], dim=-2)
    return Passed(
        delta_h,
        torch.stack(arrived[::-1], dim=-2),
        outer_sum(delta_h, delay(h, h_0)),
        outer_sum(delta_h, x),
        delta_h.reshape(-1, delta_h.shape[-1]).sum(0),
    )


def outer_sum(delta: Tensor, input: Tensor) -> Tensor:
    """Σ_t δ⁽ᵗ⁾ v⁽ᵗ⁾ᵀ over the steps and the batch"""
    return delta.reshape(-1, delta.shape[-1]).mT @ input.reshape(-1, input.shape[-1])


def output_backward(h: Tensor, w_hy: Tensor, delta_y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """W_hyᵀ δ_y at every step, dW_hy and db_y."""
    return delta_y @ w_hy, outer_sum(delta_y, h), delta_y.reshape(-1, delta_y.shape[-1]).sum(0)


def step_jacobians(h: Tensor, w_hh: Tensor, slope: Callable[[Tensor], Tensor] = tanh_slope) -> Tensor:
    """∂h⁽ᵗ⁾/∂h⁽ᵗ⁻¹⁾ = diag(σ_h') W_hh at every t: (t, h) -> (t, h, h)"""
    return slope(h)[..., None] * w_hh


def product(jacobians: Tensor) -> Tensor:
    """J⁽ᵀ⁾ … J⁽¹⁾, the latest on the left: (t, h, h) -> (h, h)"""
    found = torch.eye(jacobians.shape[-1], dtype=jacobians.dtype)
    for j in jacobians:
        found = j @ found
    return found


class LSTMPassed(NamedTuple):
    """What the backward pass of an LSTM gives: totals at every step, and the weights' gradients."""

    h: Tensor
    c: Tensor
    gates: Tensor
    """df, di, do, dc̃ at their preactivations (…, t, 4 h)"""
    w: Tensor
    b: Tensor
    h_0: Tensor
    c_0: Tensor


def lstm_states(x: Tensor, start: Memory, w: Gates) -> list[Opened]:
    """Every step with its gates."""
    found: list[Opened] = []
    for x_t in x.unbind(-2):
        before = Memory(found[-1].h, found[-1].c) if found else start
        found.append(lstm_opened(x_t, before, w))
    return found


def lstm_backward(x: Tensor, start: Memory, steps: list[Opened], w: Gates, g: Tensor) -> LSTMPassed:
    """From g (…, t, h), the gradient that each h_t gets from its own step."""
    size = start.h.shape[-1]
    dh_next, dc_next = torch.zeros_like(start.h), torch.zeros_like(start.c)
    rows: list[tuple[Tensor, Tensor, Tensor]] = []
    for t in reversed(range(len(steps))):
        s, c_before = steps[t], steps[t - 1].c if t else start.c
        dh = g[..., t, :] + dh_next
        squashed = s.c.tanh()
        dc = dh * s.o * (1 - squashed.square()) + dc_next
        gates = torch.cat(
            [
                dc * c_before * s.f * (1 - s.f),
                dc * s.candidate * s.i * (1 - s.i),
                dh * squashed * s.o * (1 - s.o),
                dc * s.i * (1 - s.candidate.square()),
            ],
            dim=-1,
        )
        dh_next, dc_next = gates @ w.w[:, :size], dc * s.f
        rows.append((dh, dc, gates))
    dh_all, dc_all, gates_all = (torch.stack(part[::-1], dim=-2) for part in zip(*rows, strict=True))
    h = torch.stack([s.h for s in steps], dim=-2)
    read = torch.cat([delay(h, start.h), x], dim=-1)
    b = gates_all.reshape(-1, 4 * size).sum(0)
    return LSTMPassed(dh_all, dc_all, gates_all, outer_sum(gates_all, read), b, dh_next, dc_next)
