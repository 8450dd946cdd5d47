"""Recurrent cells: one step of a state that is carried through time, and the driver that unrolls any of them.

    h_t = f(h_{t-1}, x_t; θ)        the same θ at every step;   h_0 = 0

    RNN     h = tanh(W_hh h_{t-1} + W_xh x_t + b_h)          ONE hidden bias; ReLU: `rnn(…, torch.relu)`
            y = W_hy h + b_y

    LSTM    f, i, o = σ(W_f u + b_f), σ(W_i u + b_i), σ(W_o u + b_o)           u = [h_{t-1}; x_t], h first
            c̃ = tanh(W_c u + b_c)                                              three gates and a candidate
            c_t = f ⊙ c_{t-1} + i ⊙ c̃,   h_t = o ⊙ tanh(c_t)

    GRU     r, z = σ(W_r u + b_r), σ(W_z u + b_z)
            h̃ = tanh(W_h [r ⊙ h_{t-1}; x_t] + b_h)                             reset BEFORE the matrix
            h_t = z ⊙ h_{t-1} + (1 - z) ⊙ h̃                                    `gru` (DLN): z keeps the old state
            h_t = (1 - z) ⊙ h_{t-1} + z ⊙ h̃                                    `gru_of_new` (S940, no biases: b = 0)
            h̃ = tanh(W_x x + b_x + r ⊙ (W_h h_{t-1} + b_h)), z keeps           `gru_after` (torch): reset AFTER it

    memory  m_t = x_t if write_t else k_{t-1},   y_t = read_t m_t,   k_t = keep_t m_t           (DLN's gated cell)

Weights of the gates are stacked by rows. torch.nn.RNN, LSTM and GRU are the fast forms: torch has two biases that add
up, and orders the LSTM as i, f, g, o; `*_from_torch` and `*_to_torch` convert. torch.nn.GRU is only `gru_after`.

Errata, and the form taken: DLN's cell code multiplies W_hy (hidden, output) from the left, which fails unless both
sizes agree: W_hy is (output, hidden) here. (15.29) of MF leaves the inputs out. S940 counts four LSTM gates; there are
three. DLN's role list says that z lets the NEW candidate in; its equation, followed here, keeps the OLD state. The keep
gate of DLN's memory acts on the OUTGOING edge, after reading: with the timing of the LSTM its example would read 0.

Systems: rnn-unfolding, vanilla-rnn, lstm, gru, gated-memory-cell
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

State = TypeVar("State")


class RNN(NamedTuple):
    """W_hh (h, h), W_xh (h, d), b_h (h)"""

    w_hh: Tensor
    w_xh: Tensor
    b_h: Tensor


class Gates(NamedTuple):
    """W (n h, h + d) and b (n h): n maps of [h; x], stacked. LSTM: f, i, o, c. GRU: r, z, h."""

    w: Tensor
    b: Tensor


class After(NamedTuple):
    """torch's GRU: W_ih (3 h, d), W_hh (3 h, h), b_ih, b_hh (3 h); r, z, n."""

    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor
    b_hh: Tensor


class Memory(NamedTuple):
    """The two states of an LSTM."""

    h: Tensor
    c: Tensor


class Opened(NamedTuple):
    """What one step of an LSTM computes on its way."""

    f: Tensor
    i: Tensor
    o: Tensor
    candidate: Tensor
    h: Tensor
    c: Tensor


def unroll(step: Callable[[Tensor, State], State], x: Tensor, state: State) -> list[State]:
    """The states after every step of x (…, t, d), for any cell step(x_t, state) -> state."""
    states = []
    for x_t in x.unbind(-2):
        state = step(x_t, state)
        states.append(state)
    return states


def preactivation(x: Tensor, h: Tensor, w: RNN) -> Tensor:
    """z_h = W_hh h_{t-1} + W_xh x_t + b_h"""
    return h @ w.w_hh.mT + x @ w.w_xh.mT + w.b_h


def rnn(x: Tensor, h: Tensor, w: RNN, activation: Callable[[Tensor], Tensor] = torch.tanh) -> Tensor:
    """h_t = σ_h(z_h)"""
    return activation(preactivation(x, h, w))


def readout(h: Tensor, w_hy: Tensor, b_y: Tensor) -> Tensor:
    """z_y = W_hy h + b_y with W_hy (output, hidden)"""
    return h @ w_hy.mT + b_y


def lstm_opened(x: Tensor, state: Memory, w: Gates) -> Opened:
    """One step with its gates."""
    f, i, o, candidate = (torch.cat([state.h, x], dim=-1) @ w.w.mT + w.b).chunk(4, dim=-1)
    f, i, o, candidate = f.sigmoid(), i.sigmoid(), o.sigmoid(), candidate.tanh()
    c = f * state.c + i * candidate
    return Opened(f, i, o, candidate, o * c.tanh(), c)


def lstm(x: Tensor, state: Memory, w: Gates) -> Memory:
    """(h_t, c_t)"""
    opened = lstm_opened(x, state, w)
    return Memory(opened.h, opened.c)


class Reset(NamedTuple):
    """What one step of a GRU computes on its way."""

    r: Tensor
    z: Tensor
    candidate: Tensor


def gru_opened(x: Tensor, h: Tensor, w: Gates) -> Reset:
    """r, z and h̃, reset before the matrix."""
    size = h.shape[-1]
    r, z = (torch.cat([h, x], dim=-1) @ w.w[: 2 * size].mT + w.b[: 2 * size]).sigmoid().chunk(2, dim=-1)
    candidate = (torch.cat([r * h, x], dim=-1) @ w.w[2 * size :].mT + w.b[2 * size :]).tanh()
    return Reset(r, z, candidate)


def mix(keep: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """keep ⊙ old + (1 - keep) ⊙ new"""
    return keep * old + (1 - keep) * new


def gru(x: Tensor, h: Tensor, w: Gates) -> Tensor:
    """h_t = z ⊙ h_{t-1} + (1 - z) ⊙ h̃ (DLN)"""
    _, z, candidate = gru_opened(x, h, w)
    return mix(z, h, candidate)


def gru_of_new(x: Tensor, h: Tensor, w: Gates) -> Tensor:
    """h_t = (1 - z) ⊙ h_{t-1} + z ⊙ h̃ (S940 and the paper)"""
    _, z, candidate = gru_opened(x, h, w)
    return mix(1 - z, h, candidate)


def gru_after(x: Tensor, h: Tensor, w: After) -> Tensor:
    """torch.nn.GRU: the reset gate multiplies W_h h + b_h."""
    x_r, x_z, x_n = (x @ w.w_ih.mT + w.b_ih).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w.w_hh.mT + w.b_hh).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    return mix(z, h, (x_n + r * h_n).tanh())


class Kept(NamedTuple):
    """DLN's memory after every step: what it held, what was read, what is carried on."""

    content: Tensor
    y: Tensor
    carried: Tensor


def gated_memory(x: Tensor, write: Tensor, keep: Tensor, read: Tensor) -> Kept:
    """A value written, kept and read by gates of 0 and 1, all (t,)."""
    carried, found = torch.zeros_like(x[0]), []
    for x_t, w, k, r in zip(x, write, keep, read, strict=True):
        content = torch.where(w > 0, x_t, carried)
        carried = k * content
        found.append((content, r * content, carried))
    return Kept(*(torch.stack(parts) for parts in zip(*found, strict=True)))


def cell_state(c: Tensor, f: Tensor, i: Tensor, candidate: Tensor) -> Tensor:
    """The LSTM's memory alone under given gates (t, …): c_t = f_t ⊙ c_{t-1} + i_t ⊙ c̃_t, at every t."""
    states = []
    for f_t, i_t, new in zip(f, i, candidate, strict=True):
        c = f_t * c + i_t * new
        states.append(c)
    return torch.stack(states)


def rnn_from_torch(w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> RNN:
    """The two biases add up."""
    return RNN(w_hh, w_ih, b_ih + b_hh)


def rnn_to_torch(w: RNN) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """weight_ih, weight_hh, bias_ih and a bias_hh of 0."""
    return w.w_xh, w.w_hh, w.b_h, torch.zeros_like(w.b_h)


def lstm_from_torch(w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Gates:
    """i, f, g, o with two biases -> f, i, o, c on [h; x] with one."""
    i, f, g, o = torch.cat([w_hh, w_ih, (b_ih + b_hh)[:, None]], dim=1).chunk(4)
    all_rows = torch.cat([f, i, o, g])
    return Gates(all_rows[:, :-1], all_rows[:, -1])


def lstm_to_torch(w: Gates) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """weight_ih, weight_hh, bias_ih and a bias_hh of 0, in torch's order."""
    size = len(w.b) // 4
    f, i, o, g = torch.cat([w.w, w.b[:, None]], dim=1).chunk(4)
    rows = torch.cat([i, f, g, o])
    return rows[:, size:-1], rows[:, :size], rows[:, -1], torch.zeros_like(w.b)


def gru_from_torch(w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Gates:
    """The same numbers in the books' form, r, z, h on [h; x], one bias; the function differs (reset before)."""
    return Gates(torch.cat([w_hh, w_ih], dim=1), b_ih + b_hh)
