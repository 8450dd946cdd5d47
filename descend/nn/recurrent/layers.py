"""Recurrent layers on the fast kernels: stacked, in both directions, on sequences of different lengths.

    layer l reads the states of layer l - 1;   h⁽⁰⁾ = 0 unless a state is given
    both directions:  h→ reads 1..T, h← reads T..1;   h_t = [h→_t; h←_t] (`Concatenated`) or h→_t + h←_t (`Summed`)

The kernels are torch.nn.RNN, LSTM and GRU: proven equal to the readable cells of `descend.ops.recurrent`, with two
biases that add up, the gate order i, f, g, o, and the reset gate of the GRU behind the matrix. The books' GRUs are the
cells "gru-keep" (DLN) and "gru-update" (S940), unrolled step by step (`nn.recurrent.stepwise`). Padding is packed away:
no state ever sees it, in either direction, and the state that is returned is that of each sequence's last real step.

A state is one tensor (n, depth, b, h), n = 2 for h and c of an LSTM, else 1.

Systems: vanilla-rnn, lstm, gru, bidirectional-lstm, sequence-batching
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from descend.nn.init import forget_bias_
from descend.nn.recurrent.stepwise import KeepGRU, Stepwise, UpdateGRU

Cell = Literal["rnn", "lstm", "gru", "gru-keep", "gru-update"]
KERNELS: dict[str, type[nn.RNNBase]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
STEPWISE: dict[str, type[Stepwise]] = {"gru-keep": KeepGRU, "gru-update": UpdateGRU}


class Recurrent(nn.Module):
    """`depth` layers of one cell: x (b, t, inputs) -> h (b, t, width) and the last state; an LSTM has b_f = 1."""

    def __init__(self, cell: Cell, inputs: int, width: int, depth: int = 1, dropout: float = 0.0):
        super().__init__()
        self.width, self.layers = width, make_layers(cell, inputs, width, depth, dropout)

    def forward(self, x: Tensor, state: Tensor | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return run(self.layers, x, state, lengths)

    def start(self, batch: int) -> Tensor:
        """h⁽⁰⁾ = 0, and c⁽⁰⁾ = 0: (n, depth, b, h)"""
        kinds = 2 if isinstance(self.layers, nn.LSTM) else 1
        return next(self.layers.parameters()).new_zeros(kinds, self.layers.num_layers, batch, self.width)


class Concatenated(nn.Module):
    """Both directions, h_t = [h→_t; h←_t]: (b, t, inputs) -> (b, t, 2 width), and the last states, side by side."""

    factor = 2

    def __init__(self, cell: Cell, inputs: int, width: int, depth: int = 1, dropout: float = 0.0):
        super().__init__()
        self.width, self.layers = width, make_layers(cell, inputs, width, depth, dropout, directions=2)

    def forward(self, x: Tensor, state: Tensor | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        h, last = run(self.layers, x, state, lengths)
        return h, last.unflatten(1, (-1, 2)).transpose(2, 3).flatten(3)  # (n, depth, b, 2 h)


class Summed(Concatenated):
    """Both directions, h_t = h→_t + h←_t: (b, t, inputs) -> (b, t, width), and the sum of the last states."""

    factor = 1

    def forward(self, x: Tensor, state: Tensor | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        h, last = super().forward(x, state, lengths)
        return h.unflatten(-1, (2, -1)).sum(-2), last.unflatten(-1, (2, -1)).sum(-2)


def make_layers(
    cell: Cell, inputs: int, width: int, depth: int, dropout: float, directions: int = 1
) -> nn.RNNBase | Stepwise:
    """The layers of this cell; dropout is between them."""
    between = dropout if depth > 1 else 0.0
    if cell in STEPWISE:
        return STEPWISE[cell](inputs, width, depth, between, directions)
    if cell not in KERNELS:
        raise ValueError(f"cell {cell!r} is unknown; known: {', '.join(KERNELS | STEPWISE)}")
    layer = KERNELS[cell](inputs, width, depth, batch_first=True, dropout=between, bidirectional=directions == 2)  # type: ignore[arg-type]
    if isinstance(layer, nn.LSTM):
        forget_bias_(layer)
    return layer


def run(
    layers: nn.RNNBase | Stepwise, x: Tensor, state: Tensor | None, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """h (b, t, directions · h) and the last state (n, depth · directions, b, h); padding is 0 in h."""
    if isinstance(layers, Stepwise):
        h, last = layers(x, None if state is None else state[0], lengths)
        return h, last[None]
    parts = None if state is None else tuple(state.unbind(0))
    given = parts if parts is None or isinstance(layers, nn.LSTM) else parts[0]
    if lengths is None:
        h, last = layers(x, given)
    else:
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        h, last = layers(packed, given)
        h, _ = pad_packed_sequence(h, batch_first=True, total_length=x.shape[1])
    return h, torch.stack(last) if isinstance(last, tuple) else last[None]
