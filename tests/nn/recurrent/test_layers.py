"""Stacked and bidirectional layers against torch's kernels and the readable cells."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.nn.recurrent.layers import Cell, Concatenated, Recurrent, Summed
from descend.nn.recurrent.stepwise import KeepGRU
from descend.ops.recurrent import Memory, gru, gru_from_torch, gru_of_new, lstm, lstm_from_torch, unroll
from descend.ops.sequences import backwards, last, pad
from tests.close import close

CELLS: list[Cell] = ["rnn", "lstm", "gru", "gru-keep", "gru-update"]
LENGTHS = torch.tensor([5, 2, 7])


def inputs(width: int = 3) -> Tensor:
    return torch.randn(3, 7, width, generator=torch.Generator().manual_seed(0))


@pytest.mark.system("gru", "layers")
@pytest.mark.system("lstm", "sequences")
@pytest.mark.system("vanilla-rnn", "batches")
@pytest.mark.system("sequence-batching")
@pytest.mark.system("sequence-batching", "padding", "start")
@pytest.mark.system("rnn-task-heads")
@pytest.mark.system("rnn-task-heads", "many-to-one")
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layer", [Recurrent, Concatenated, Summed])
def test_padding_is_never_read(layer: Any, cell: Cell) -> None:
    torch.manual_seed(0)
    net, x = layer(cell, 3, 4, depth=2), inputs()
    h, state = net(x, None, LENGTHS)
    for i, n in enumerate(LENGTHS.tolist()):
        alone, last_alone = net(x[i : i + 1, :n])
        close(h[i : i + 1, :n], alone)
        close(state[:, :, i : i + 1], last_alone)
        assert (h[i, n:] == 0).all()
    if layer is Recurrent:
        close(state[0, -1], last(h, LENGTHS))  # h⁽ᵀ⁾ of each sequence
        assert torch.equal(net.start(3), torch.zeros(2 if cell == "lstm" else 1, 2, 3, 4))


@pytest.mark.system("lstm")
@pytest.mark.system("lstm", "sequences")
@pytest.mark.system("vanilla-rnn")
def test_stacked_layers_are_cells_on_cells() -> None:
    torch.manual_seed(0)
    net, x = Recurrent("lstm", 3, 4, depth=2).double(), inputs().double()
    p: Any = net.layers
    h = x
    for layer in ("l0", "l1"):
        w = lstm_from_torch(
            *(getattr(p, f"{name}_{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        )
        zero = torch.zeros(3, 4).double()
        step: Any = partial(lstm, w=w)
        states = unroll(step, h, Memory(zero, zero))
        h = torch.stack([s.h for s in states], dim=1)
    found, state = net(x)
    close(found, h)
    close(state[1, 1], states[-1].c)
    first, middle = net(x[:, :3])
    again, _ = net(x[:, 3:], middle)  # a state is carried on
    close(torch.cat([first, again], dim=1), found)


@pytest.mark.system("recurrent-init")
def test_an_lstm_starts_with_open_forget_gates() -> None:
    p: Any = Recurrent("lstm", 3, 4).layers
    w = lstm_from_torch(p.weight_ih_l0, p.weight_hh_l0, p.bias_ih_l0, p.bias_hh_l0)
    assert torch.equal(w.b, torch.tensor([1.0] * 4 + [0.0] * 12))


@pytest.mark.system("bidirectional-lstm")
@pytest.mark.system("bidirectional-lstm", "concatenated", "summed")
def test_two_directions_are_two_layers() -> None:
    torch.manual_seed(0)
    net, x = Concatenated("lstm", 3, 4).double(), inputs().double()
    there, back = (nn.LSTM(3, 4, batch_first=True).double() for _ in range(2))
    with torch.no_grad():
        for layer, suffix in ((there, "_l0"), (back, "_l0_reverse")):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(layer, f"{name}_l0").copy_(getattr(net.layers, name + suffix))
    both = torch.cat([there(x)[0], back(x.flip(1))[0].flip(1)], dim=-1)
    close(net(x)[0], both)
    h, state = net(x, None, LENGTHS)
    turned = backwards(back(backwards(x, LENGTHS))[0], LENGTHS)
    for i, n in enumerate(LENGTHS.tolist()):
        close(h[i, :n], torch.cat([there(x)[0], turned], dim=-1)[i, :n])
    close(state[0, 0, 0, :4], there(x[:1, :5])[1][0][0, 0])
    summed = Summed("lstm", 3, 4).double()
    summed.load_state_dict(net.state_dict())
    close(summed(x)[0], both[..., :4] + both[..., 4:])


@pytest.mark.system("bidirectional-lstm")
@pytest.mark.system("bidirectional-lstm", "whole-sequence")
def test_a_later_word_changes_earlier_outputs() -> None:
    torch.manual_seed(0)
    x = inputs()
    other = x.clone()
    other[:, 5] += 1
    assert not torch.allclose(Summed("lstm", 3, 4)(x)[0][:, 0], Summed("lstm", 3, 4)(other)[0][:, 0])
    net, forward = Summed("lstm", 3, 4), Recurrent("lstm", 3, 4)
    assert (net(x)[0] - net(other)[0])[:, 0].abs().max() > 1e-6
    assert torch.equal(forward(x)[0][:, :5], forward(other)[0][:, :5])


BOOKS: dict[Cell, Any] = {"gru-keep": gru, "gru-update": gru_of_new}


@pytest.mark.system("gru")
@pytest.mark.system("gru", "keeps-old", "weights-new", "count", "layers")
@pytest.mark.parametrize("cell", BOOKS)
def test_the_books_gru_is_their_equation(cell: Cell) -> None:
    """Stacked, from a given state, in both directions; DLN's has 3 h biases, S940's none."""
    torch.manual_seed(0)
    net, x, start = Recurrent(cell, 3, 4, depth=2).double(), inputs().double(), torch.randn(1, 2, 3, 4).double()
    layers: Any = net.layers
    h = x
    for layer in range(2):
        w = layers.gates(f"l{layer}")
        h = torch.stack(unroll(partial(BOOKS[cell], w=w), h, start[0, layer]), dim=1)
    found, state = net(x, start)
    close(found, h)
    close(state[0, 1], h[:, -1])
    both: Any = Concatenated(cell, 3, 4).double()
    there = torch.stack(unroll(partial(BOOKS[cell], w=both.layers.gates("l0")), x, torch.zeros(3, 4).double()), dim=1)
    back = unroll(partial(BOOKS[cell], w=both.layers.gates("l0_reverse")), x.flip(1), torch.zeros(3, 4).double())
    close(both(x)[0], torch.cat([there, torch.stack(back, dim=1).flip(1)], dim=-1))
    count = sum(p.numel() for p in Recurrent(cell, 3, 4).parameters())
    assert count == 3 * 4 * (4 + 3) + (3 * 4 if cell == "gru-keep" else 0)


@pytest.mark.system("gru")
@pytest.mark.system("gru", "torch")
def test_the_books_gru_is_not_torchs() -> None:
    """The same numbers in both: equal after the first step from 0, where there is nothing to reset; then not."""
    torch.manual_seed(0)
    theirs, ours, x = nn.GRU(3, 4, batch_first=True), KeepGRU(3, 4), inputs()
    w = gru_from_torch(theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_ih_l0, theirs.bias_hh_l0)
    with torch.no_grad():
        theirs.bias_hh_l0.zero_()
        w = gru_from_torch(theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_ih_l0, theirs.bias_hh_l0)
        ours.gates("l0").w.copy_(w.w)
        ours.gates("l0").b.copy_(w.b)
    close(ours(x)[0][:, 0], theirs(x)[0][:, 0])
    assert (ours(x)[0][:, -1] - theirs(x)[0][:, -1]).abs().max() > 1e-3


@pytest.mark.system("gru")
@pytest.mark.system("gru", "drop-in")
@pytest.mark.parametrize("cell", BOOKS)
def test_the_books_gru_learns(cell: Cell) -> None:
    """Say whether the sum of three signs is above 0: drop-in for the LSTM."""
    torch.manual_seed(0)
    net, out = Recurrent(cell, 1, 16), nn.Linear(16, 1)
    x = torch.randint(2, (64, 3, 1)).float() * 2 - 1
    y = (x.sum((1, 2)) > 0).float()
    optimizer = torch.optim.Adam([*net.parameters(), *out.parameters()], 0.05)
    for _ in range(50):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(out(net(x)[0][:, -1])[:, 0], y)
        loss.backward()
        optimizer.step()
    assert loss < 0.1


def test_an_unknown_cell_is_named() -> None:
    with pytest.raises(ValueError, match="'lstn' is unknown; known: rnn, lstm, gru, gru-keep, gru-update"):
        Recurrent("lstn", 3, 4)  # type: ignore[arg-type]


@pytest.mark.system("sequence-batching")
def test_batches_of_columns_and_rows() -> None:
    torch.manual_seed(0)
    x, lengths = pad([torch.randn(4, 3), torch.randn(2, 3)])
    net = Recurrent("rnn", 3, 4)
    time_first = nn.RNN(3, 4)
    time_first.load_state_dict(net.layers.state_dict())
    close(net(x)[0], time_first(x.transpose(0, 1))[0].transpose(0, 1))
    assert lengths.tolist() == [4, 2]


@pytest.mark.system("gru", "against-lstm")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_gru_recalls_as_an_lstm_does_with_three_quarters_of_its_parameters(seed: int) -> None:
    """Recall, after seven steps of noise, the sign that came first; guessing costs log 2 = 0.69."""
    lost, size = {}, {}
    for cell in ("lstm", "gru", "gru-keep", "gru-update"):
        torch.manual_seed(seed)
        net, out = Recurrent(cell, 2, 12), nn.Linear(12, 1)
        optimizer = torch.optim.Adam([*net.parameters(), *out.parameters()], 0.03)
        for _ in range(60):
            x, y = 0.3 * torch.randn(48, 8, 2), torch.randint(2, (48,)).float()
            x[:, 0, 0] = 2 * y - 1
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(out(net(x)[0][:, -1])[:, 0], y)
            loss.backward()
            optimizer.step()
        lost[cell], size[cell] = loss.item(), sum(p.numel() for p in net.parameters())
    assert max(lost.values()) < 0.25, lost
    assert 4 * size["gru"] == 3 * size["lstm"]
    assert size["gru-update"] < size["gru-keep"] < size["gru"]  # no biases, one, two
