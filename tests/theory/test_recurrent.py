"""Closed forms of recurrent nets against counted parameters, measured memory, and products of Jacobians."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import nn

from descend.ops.backward.recurrent import product, states, step_jacobians
from descend.ops.recurrent import RNN, Gates, Memory, lstm, lstm_opened
from descend.theory.recurrent import (
    bottleneck,
    gru_parameters,
    highway,
    jacobian_bound,
    lstm_parameters,
    norm,
    power_norm,
    radius,
    rnn_parameters,
    scalar_tanh_gradient,
    state_megabytes,
    temporal_condition,
)
from tests.close import close


@pytest.mark.system("vanilla-rnn")
@pytest.mark.system("vanilla-rnn", "count")
@pytest.mark.system("lstm")
@pytest.mark.system("lstm", "count")
@pytest.mark.system("gru")
@pytest.mark.system("gru", "count")
@pytest.mark.parametrize(
    ("layer", "count"),
    [(nn.RNN, rnn_parameters(3, 5)), (nn.LSTM, lstm_parameters(3, 5)), (nn.GRU, gru_parameters(3, 5))],
)
def test_parameters(layer: type[nn.RNNBase], count: int) -> None:
    built = layer(3, 5)  # type: ignore[call-arg, arg-type]
    second_bias = built.bias_hh_l0.numel()  # type: ignore[operator]
    assert sum(p.numel() for p in built.parameters()) - second_bias == count


@pytest.mark.system("truncated-bptt")
@pytest.mark.system("truncated-bptt", "memory")
def test_memory_is_what_a_run_keeps() -> None:
    """The states that autograd saves for tanh' are those that the model counts."""
    steps, hidden, batch = 20, 16, 3
    w = RNN(*(torch.randn(*s, requires_grad=True) for s in ((hidden, hidden), (hidden, 2), (hidden,))))
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.shape == (batch, hidden):
            kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        h = states(torch.randn(batch, steps, 2), torch.randn(batch, hidden), w)
    assert h.shape == (batch, steps, hidden)
    found = sum(kept.values()) / 1e6
    assert found == pytest.approx(state_megabytes(steps + 1, hidden, batch))  # h_0 is kept too
    assert state_megabytes(steps, hidden, batch, tau=5) == state_megabytes(5, hidden, batch)


@pytest.mark.system("vanishing-exploding-in-time")
@pytest.mark.system("vanishing-exploding-in-time", "condition")
@pytest.mark.parametrize(("rho", "regime"), [(0.9, "vanishing"), (1.0, "critical"), (1.1, "exploding")])
def test_the_condition_in_time(rho: float, regime: str) -> None:
    q = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(0)).double())[0]
    found = temporal_condition(rho * q, 100)
    assert found[2] == regime
    close(torch.tensor(found[1]).double(), torch.tensor(rho**100).double())
    close(torch.tensor(power_norm(rho * q, 100)).double(), torch.tensor(rho**100).double())


@pytest.mark.system("vanishing-exploding-in-time")
@pytest.mark.system("vanishing-exploding-in-time", "bound", "norm-and-radius")
def test_the_bound_uses_the_norm_and_holds() -> None:
    """MF exchanges norm and radius: ‖Wⁿ‖ → 0 iff ρ < 1, ‖W‖ⁿ may explode all the same."""
    random = torch.Generator().manual_seed(1)
    for scale in (0.5, 1.0, 2.0):
        w = RNN(*(scale * torch.randn(*s, generator=random).double() for s in ((5, 5), (5, 2), (5,))))
        h = states(torch.randn(12, 2, generator=random).double(), torch.zeros(5).double(), w)
        for distance in (1, 4, 12):
            found = norm(product(step_jacobians(h[-distance:], w.w_hh)))
            assert found <= jacobian_bound(w.w_hh, distance) * (1 + 1e-12)
    skewed = torch.tensor([[0.9, 5.0], [0.0, 0.9]]).double()
    assert radius(skewed) < 1 < norm(skewed)
    assert power_norm(skewed, 400) < 1e-13 < 1e3 < power_norm(skewed, 10) * 100
    nothing = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).double()
    assert norm(nothing) == 2
    assert power_norm(nothing, 2) == 0


@pytest.mark.system("vanishing-exploding-in-time")
@pytest.mark.system("vanishing-exploding-in-time", "slope")
def test_one_unit_vanishes_even_above_one() -> None:
    h = torch.zeros(1).double()
    x = torch.full((30, 1), 0.5).double()
    w = RNN(torch.tensor([[1.1]]).double(), torch.ones(1, 1).double(), torch.zeros(1).double())
    jacobian = torch.autograd.functional.jacobian(lambda h: states(x, h, w)[-1], h)
    close(torch.tensor(scalar_tanh_gradient(1.1, 0.5, 30)).double(), jacobian[0, 0])
    assert scalar_tanh_gradient(1.1, 0.5, 100) < 1e-60


@pytest.mark.system("lstm-gradient-highway")
@pytest.mark.system("lstm-gradient-highway", "direct-path", "product")
def test_the_highway_is_the_product_of_the_forget_gates() -> None:
    """Exact with h held fixed; the total derivative has more terms."""
    random = torch.Generator().manual_seed(2)
    w = Gates(torch.randn(12, 5, generator=random).double(), torch.randn(12, generator=random).double())
    x, c_0 = torch.randn(6, 2, generator=random).double(), torch.randn(3, generator=random).double()
    h_0 = torch.randn(3, generator=random).double()

    def along(c: torch.Tensor, follow: bool) -> torch.Tensor:
        h = h_0
        for x_t in x:
            state = lstm(x_t, Memory(h if follow else h.detach(), c), w)
            h, c = state.h, state.c
        return c

    gates, state = [], Memory(h_0, c_0)
    for x_t in x:
        opened = lstm_opened(x_t, state, w)
        gates.append(opened.f)
        state = Memory(opened.h, opened.c)
    direct = torch.autograd.functional.jacobian(lambda c: along(c, False), c_0)
    total = torch.autograd.functional.jacobian(lambda c: along(c, True), c_0)
    close(direct, highway(torch.stack(gates)).diag())
    assert (total - direct).abs().max() > 0.01
    assert (highway(torch.stack(gates)) < torch.stack(gates).sum(0)).all()  # MF 16.4.1 writes the sum


@pytest.mark.system("rnn-encoder-decoder")
@pytest.mark.system("rnn-encoder-decoder", "bottleneck")
def test_bottleneck() -> None:
    assert bottleneck(9000, 30, 512) == (300, 17.578125)


class Kept:
    """A saved tensor, alive as long as the graph that needs it."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor


@pytest.mark.system("truncated-bptt", "peak")
@pytest.mark.parametrize("tau", [4, 10, 40])
def test_no_more_than_tau_states_are_kept(tau: int) -> None:
    """The states that autograd holds at the same time over a stream of 40 steps, cut every τ."""
    steps, hidden, batch = 40, 16, 3
    w = RNN(*(torch.randn(*s, requires_grad=True) for s in ((hidden, hidden), (hidden, 2), (hidden,))))
    alive: weakref.WeakSet[Kept] = weakref.WeakSet()
    peak = 0

    def note(tensor: torch.Tensor) -> Kept:
        nonlocal peak
        kept = Kept(tensor)
        if tensor.shape == (batch, hidden):
            alive.add(kept)
        peak = max(peak, len({k.tensor.data_ptr() for k in alive}))
        return kept

    x, state = torch.randn(batch, steps, 2), torch.randn(batch, hidden)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda kept: kept.tensor):
        for window in x.split(tau, dim=1):
            h = states(window, state, w)
            h.sum().backward()
            state = h[:, -1].detach().clone()
            del h
    assert peak == tau + 1  # and the state that the window starts with
