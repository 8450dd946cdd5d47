"""The readable cells against torch's kernels, and the conventions in which the books differ from them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.ops.recurrent import (
    RNN,
    After,
    Gates,
    Memory,
    cell_state,
    gated_memory,
    gru,
    gru_after,
    gru_from_torch,
    gru_of_new,
    gru_opened,
    lstm,
    lstm_from_torch,
    lstm_opened,
    lstm_to_torch,
    readout,
    rnn,
    rnn_from_torch,
    rnn_to_torch,
    unroll,
)
from descend.theory.recurrent import gru_parameters, lstm_parameters, rnn_parameters
from tests.close import close

D, H, B, T = 3, 4, 2, 6


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64)


def weights(layer: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0


@pytest.mark.system("vanilla-rnn")
@pytest.mark.system("vanilla-rnn", "one-bias", "activations", "count")
@pytest.mark.system("rnn-unfolding")
@pytest.mark.system("rnn-unfolding", "any-cell")
@pytest.mark.parametrize(("name", "activation"), [("tanh", torch.tanh), ("relu", torch.relu)])
def test_rnn_is_torch_rnn(name: str, activation: Any) -> None:
    torch.manual_seed(0)
    layer, x = nn.RNN(D, H, nonlinearity=name, batch_first=True).double(), drawn(B, T, D)
    w = rnn_from_torch(*weights(layer))
    h = torch.stack(unroll(lambda x_t, h: rnn(x_t, h, w, activation), x, torch.zeros(B, H).double()), dim=1)
    close(h, layer(x)[0])
    other = nn.RNN(D, H, nonlinearity=name, batch_first=True).double()
    with torch.no_grad():
        for p, value in zip(weights(other), rnn_to_torch(w), strict=True):
            p.copy_(value)
    close(other(x)[0], layer(x)[0])
    assert rnn_parameters(D, H, 2) == sum(p.numel() for p in (*w, drawn(2, H), drawn(2)))


@pytest.mark.system("rnn-unfolding", "any-cell")
@pytest.mark.system("lstm")
@pytest.mark.system("lstm", "torch", "layout", "count")
def test_lstm_is_torch_lstm() -> None:
    torch.manual_seed(1)
    layer, x = nn.LSTM(D, H, batch_first=True).double(), drawn(B, T, D)
    w = lstm_from_torch(*weights(layer))
    zero = torch.zeros(B, H).double()
    states = unroll(lambda x_t, s: lstm(x_t, s, w), x, Memory(zero, zero))
    h, (_, c) = layer(x)
    close(torch.stack([s.h for s in states], dim=1), h)
    close(states[-1].c, c[0])
    with torch.no_grad():
        other = nn.LSTM(D, H, batch_first=True).double()
        for p, value in zip(weights(other), lstm_to_torch(w), strict=True):
            p.copy_(value)
    close(other(x)[0], h)
    assert w.w.numel() + w.b.numel() == lstm_parameters(D, H)


@pytest.mark.system("lstm")
@pytest.mark.system("gru")
@pytest.mark.system("vanilla-rnn")
def test_gradients() -> None:
    x, h, c = (drawn(B, n, seed=n).requires_grad_() for n in (D, H, H))
    w = tuple(drawn(n * H, H + D, seed=n).requires_grad_() for n in (4, 3))
    assert torch.autograd.gradcheck(
        lambda x, h, c, v: lstm(x, Memory(h, c), Gates(v, torch.zeros(16).double())), (x, h, c, w[0])
    )
    for step in (gru, gru_of_new):
        assert torch.autograd.gradcheck(
            lambda x, h, v, step=step: step(x, h, Gates(v, torch.zeros(12).double())), (x, h, w[1])
        )
    square, into, b = (drawn(*s).requires_grad_() for s in ((H, H), (H, D), (H,)))
    assert torch.autograd.gradcheck(lambda x, h, a, v, b: rnn(x, h, RNN(a, v, b)), (x, h, square, into, b))


@pytest.mark.system("lstm")
@pytest.mark.system("lstm", "gates")
def test_gates_and_ranges() -> None:
    opened = lstm_opened(
        drawn(50, D), Memory(drawn(50, H), drawn(50, H, seed=3)), Gates(drawn(4 * H, H + D), drawn(4 * H))
    )
    for gate in (opened.f, opened.i, opened.o):
        assert ((gate > 0) & (gate < 1)).all()
    assert (opened.candidate.abs() < 1).all()
    assert (opened.candidate < 0).any()


@pytest.mark.system("lstm")
@pytest.mark.system("lstm", "copy")
def test_open_forget_gate_and_shut_input_gate_keep_the_cell() -> None:
    c = drawn(H)
    w = Gates(torch.zeros(4 * H, H + D).double(), torch.tensor([60.0, -60.0, 0.0, 5.0]).double().repeat_interleave(H))
    states = unroll(lambda x_t, s: lstm(x_t, s, w), drawn(100, D), Memory(torch.zeros(H).double(), c))
    close(states[-1].c, c)
    ones = torch.ones(100, 1).double()
    close(cell_state(c, ones, 0 * ones, ones)[-1], c)


@pytest.mark.system("rnn-unfolding", "any-cell")
@pytest.mark.system("gru")
@pytest.mark.system("gru", "torch")
def test_gru_after_is_torch_gru_and_the_books_form_is_not() -> None:
    torch.manual_seed(2)
    layer, x = nn.GRU(D, H, batch_first=True).double(), drawn(B, T, D)
    zero = torch.zeros(B, H).double()
    after = unroll(lambda x_t, h: gru_after(x_t, h, After(*weights(layer))), x, zero)
    close(torch.stack(after, dim=1), layer(x)[0])
    before = unroll(lambda x_t, h: gru(x_t, h, gru_from_torch(*weights(layer))), x, zero)
    assert (torch.stack(before, dim=1) - layer(x)[0]).abs().max() > 1e-3


@pytest.mark.system("gru")
@pytest.mark.system("gru", "keeps-old", "weights-new", "limit", "count")
def test_gru_conventions() -> None:
    x, h, w = drawn(B, D), drawn(B, H), Gates(drawn(3 * H, H + D), drawn(3 * H))
    flipped = Gates(w.w.clone(), w.b.clone())
    flipped.w[H : 2 * H] *= -1
    flipped.b[H : 2 * H] *= -1
    close(gru(x, h, w), gru_of_new(x, h, flipped))  # 1 - σ(a) = σ(-a)
    _, z, candidate = gru_opened(x, h, w)
    close(gru(x, h, w), z * h + (1 - z) * candidate)
    # r = 1 and z = 0: a vanilla network
    open_ = Gates(w.w, torch.cat([torch.full((H,), 60.0), torch.full((H,), -60.0), w.b[2 * H :]]).double())
    open_.w[: 2 * H] = 0
    close(gru(x, h, open_), rnn(x, h, RNN(w.w[2 * H :, :H], w.w[2 * H :, H:], w.b[2 * H :])))
    assert w.w.numel() + w.b.numel() == gru_parameters(D, H)
    assert 4 * gru_parameters(D, H) == 3 * lstm_parameters(D, H)


@pytest.mark.system("rnn-unfolding")
@pytest.mark.system("rnn-unfolding", "causal")
def test_states_depend_on_the_past_only() -> None:
    x, w = drawn(T, D).requires_grad_(), RNN(drawn(H, H), drawn(H, D), drawn(H))
    h = unroll(lambda x_t, h: rnn(x_t, h, w), x, torch.zeros(H).double())
    for t in range(T):
        (g,) = torch.autograd.grad(h[t].sum(), x, retain_graph=True)
        assert (g[t + 1 :] == 0).all()
        assert (g[: t + 1].abs().sum(1) > 0).all()


@pytest.mark.system("rnn-unfolding")
@pytest.mark.system("rnn-unfolding", "lengths")
@pytest.mark.system("vanilla-rnn")
@pytest.mark.system("vanilla-rnn", "shift")
def test_one_set_of_weights_for_any_length_and_the_same_after_the_same_state() -> None:
    w = RNN(drawn(H, H) / 4, drawn(H, D), drawn(H))
    x = drawn(1000, D)
    whole = unroll(lambda x_t, h: rnn(x_t, h, w), x, torch.zeros(H).double())
    later = unroll(lambda x_t, h: rnn(x_t, h, w), x[100:], whole[99])  # a shifted sequence after the same state
    close(torch.stack(later), torch.stack(whole[100:]))


@pytest.mark.system("vanilla-rnn")
@pytest.mark.system("vanilla-rnn", "outputs")
def test_readout_has_its_matrix_the_right_way() -> None:
    assert readout(drawn(B, H), drawn(2, H), drawn(2)).shape == (B, 2)
    with pytest.raises(RuntimeError):  # DLN's shape (hidden, output)
        readout(drawn(B, H), drawn(H, 2), drawn(2))


@pytest.mark.system("gated-memory-cell")
@pytest.mark.system("gated-memory-cell", "outgoing")
def test_the_keep_gate_acts_after_reading() -> None:
    x = torch.tensor([5.0, 7.0, 9.0])
    write, read = torch.tensor([1, 0, 0]), torch.tensor([0, 1, 1])
    kept = gated_memory(x, write, torch.tensor([1, 0, 1]), read)
    assert kept.y.tolist() == [0.0, 5.0, 0.0]  # read at step 2 although it is not kept on
    assert kept.carried.tolist() == [5.0, 0.0, 0.0]
    always = torch.ones(3)
    assert torch.equal(gated_memory(x, always, always, always).y, x)


@pytest.mark.system("rnn-unfolding", "sketch")
def test_the_nested_form_without_inputs() -> None:
    """MF (15.29): h⁽ᵀ⁾ = σ(W_hh … σ(W_hh h⁽¹⁾)) is the recurrence where inputs and bias are 0, and only there."""
    w = RNN(drawn(H, H), drawn(H, D), torch.zeros(H).double())
    h_1 = nested = drawn(H)
    for _ in range(T):
        nested = (w.w_hh @ nested).tanh()
    step = lambda x_t, h: rnn(x_t, h, w)
    close(unroll(step, torch.zeros(T, D).double(), h_1)[-1], nested)
    assert (unroll(step, drawn(T, D), h_1)[-1] - nested).abs().max() > 0.1
