"""Recurrent layers on the fast kernels: stacked, in both directions, on sequences of different lengths.

    layer l reads the states of layer l - 1;   h⁽⁰⁾ = 0 unless a state is given
    both directions:  h→ reads 1..T, h← reads T..1;   h_t = [h→_t; h←_t] (`Concatenated`) or h→_t + h←_t (`Summed`)

The kernels are torch.nn.RNN, LSTM and GRU: proven equal to the readable cells of `descend.ops.recurrent`, with two
biases that add up, the gate order i, f, g, o, and the reset gate of the GRU behind the matrix. `Books` runs the books'
GRU, or any other cell, step by step. Padding is packed away: no state ever sees it, in either direction, and the
state that is returned is that of each sequence's last real step.

A state is one tensor (n, depth, b, h), n = 2 for h and c of an LSTM, else 1.

Systems: vanilla-rnn, lstm, gru, bidirectional-lstm, sequence-batching
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from descend.nn.init import forget_bias_
from descend.ops.recurrent import Gates, unroll

Cell = Literal["rnn", "lstm", "gru"]
KERNELS: dict[str, type[nn.RNNBase]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class Recurrent(nn.Module):
    """`depth` layers of one cell: x (b, t, inputs) -> h (b, t, width) and the last state; an LSTM has b_f = 1."""

    def __init__(self, cell: Cell, inputs: int, width: int, depth: int = 1, dropout: float = 0.0):
        super().__init__()
        self.width, self.layers = width, kernel(cell, inputs, width, depth, dropout)

    def forward(self, x: Tensor, state: Tensor | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return run(self.layers, x, state, lengths)

    def start(self, batch: int) -> Tensor:
        """h⁽⁰⁾ = 0, and c⁽⁰⁾ = 0: (n, depth, b, h)"""
        weight = cast("Tensor", self.layers.weight_hh_l0)
        kinds = 2 if isinstance(self.layers, nn.LSTM) else 1
        return weight.new_zeros(kinds, self.layers.num_layers, batch, self.width)


class Concatenated(nn.Module):
    """Both directions, h_t = [h→_t; h←_t]: (b, t, inputs) -> (b, t, 2 width), and the last states, side by side."""

    factor = 2

    def __init__(self, cell: Cell, inputs: int, width: int, depth: int = 1, dropout: float = 0.0):
        super().__init__()
        self.width, self.layers = width, kernel(cell, inputs, width, depth, dropout, directions=2)

    def forward(self, x: Tensor, state: Tensor | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        h, last = run(self.layers, x, state, lengths)
        return h, last.unflatten(1, (-1, 2)).transpose(2, 3).flatten(3)  # (n, depth, b, 2 h)


class Summed(Concatenated):
    """Both directions, h_t = h→_t + h←_t: (b, t, inputs) -> (b, t, width), and the sum of the last states."""

    factor = 1

    def forward(self, x: Tensor, state: Tensor | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        h, last = super().forward(x, state, lengths)
        return h.unflatten(-1, (2, -1)).sum(-2), last.unflatten(-1, (2, -1)).sum(-2)


class Books(nn.Module):
    """A cell of the books with its own weights, unrolled step by step: x (b, t, inputs) -> h (b, t, width).

    `step` is `ops.recurrent.gru` or `gru_of_new`, whose `maps` are r, z, h.
    """

    def __init__(self, step: Callable[[Tensor, Tensor, Gates], Tensor], inputs: int, width: int, maps: int = 3):
        super().__init__()
        self.step, self.width = step, width
        self.weight = nn.Parameter(torch.empty(maps * width, width + inputs))
        self.bias = nn.Parameter(torch.zeros(maps * width))
        nn.init.uniform_(self.weight, -(width**-0.5), width**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        w = Gates(self.weight, self.bias)
        return torch.stack(unroll(lambda x_t, h: self.step(x_t, h, w), x, x.new_zeros(len(x), self.width)), dim=1)


def kernel(cell: Cell, inputs: int, width: int, depth: int, dropout: float, directions: int = 1) -> nn.RNNBase:
    """torch's layer of this cell; dropout is between the layers."""
    if cell not in KERNELS:
        raise ValueError(f"cell {cell!r} is unknown; known: {', '.join(KERNELS)}")
    between = dropout if depth > 1 else 0.0
    layer = KERNELS[cell](inputs, width, depth, batch_first=True, dropout=between, bidirectional=directions == 2)  # type: ignore[arg-type]
    if isinstance(layer, nn.LSTM):
        forget_bias_(layer)
    return layer


def run(layers: nn.RNNBase, x: Tensor, state: Tensor | None, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """h (b, t, directions · h) and the last state (n, depth · directions, b, h); padding is 0 in h."""
    parts = None if state is None else tuple(state.unbind(0))
    given = parts if parts is None or isinstance(layers, nn.LSTM) else parts[0]
    if lengths is None:
        h, last = layers(x, given)
    else:
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        h, last = layers(packed, given)
        h, _ = pad_packed_sequence(h, batch_first=True, total_length=x.shape[1])
    return h, torch.stack(last) if isinstance(last, tuple) else last[None]
