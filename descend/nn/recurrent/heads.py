"""What is answered from the states of a recurrent net: one answer, one for each step, or a sequence from one vector.

    many-to-one     `LastState`       y = W h⁽ᵀ⁾ + b                              T of each sequence, not of the padding
                    `AttentionPool`   M = tanh(H),  α = softmax(wᵀ M),  r = H αᵀ,  h* = tanh(r),  y = W h* + b
                                      or layers between: h* ← tanh(V h* + c) for each width in `between`
    many-to-many    `EachStep`        y⁽ᵗ⁾ = W h⁽ᵗ⁾ + b
    one-to-many     `FromVector`      h⁽⁰⁾ = W x, then each step reads the symbol before it

DLN leaves the formula of Att-BLSTM's weights out; the one above is that of the paper (Zhou et al. 2016). The weights of
padding are 0. Every head takes all states h (b, t, d), the last ones (b, d) and the lengths (b).

Systems: rnn-task-heads, att-blstm
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.nn.recurrent.layers import Cell, Recurrent
from descend.ops.sequences import real


class LastState(nn.Module):
    """The state after each sequence's last real step, `last` (b, d), -> (b, outputs)"""

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.out = nn.Linear(width, outputs)

    def forward(self, h: Tensor, last: Tensor, lengths: Tensor) -> Tensor:
        return self.out(last)


class EachStep(nn.Module):
    """h (b, t, d) -> (b, t, outputs)"""

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.out = nn.Linear(width, outputs)

    def forward(self, h: Tensor, last: Tensor, lengths: Tensor) -> Tensor:
        return self.out(h)


class AttentionPool(nn.Module):
    """One vector of all states, each weighted by what it says: (b, t, d) -> (b, outputs)"""

    def __init__(self, width: int, outputs: int, between: Sequence[int] = ()):
        super().__init__()
        self.w = nn.Parameter(torch.randn(width) / math.sqrt(width))
        sizes = [width, *between]
        self.between = nn.ModuleList(nn.Linear(m, n) for m, n in pairwise(sizes))
        self.out = nn.Linear(sizes[-1], outputs)

    def weights(self, h: Tensor, lengths: Tensor) -> Tensor:
        """α (b, t): a distribution over the real words."""
        scores = h.tanh() @ self.w
        return scores.masked_fill(~real(lengths, h.shape[1]), -math.inf).softmax(dim=-1)

    def forward(self, h: Tensor, last: Tensor, lengths: Tensor) -> Tensor:
        pooled = torch.einsum("bt,btd->bd", self.weights(h, lengths), h).tanh()
        for layer in self.between:
            pooled = layer(pooled).tanh()
        return self.out(pooled)


class FromVector(nn.Module):
    """A sequence from one vector: x (b, inputs) and the symbols so far (b, t) -> logits (b, t, outputs)"""

    def __init__(self, cell: Cell, inputs: int, width: int, outputs: int):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.embed = nn.Embedding(outputs, width)
        self.layers = Recurrent(cell, width, width)
        self.out = nn.Linear(width, outputs)

    def forward(self, x: Tensor, symbols: Tensor) -> Tensor:
        state = self.layers.start(len(x))
        state = torch.cat([self.first(x)[None, None], state[1:]])  # an LSTM's c⁽⁰⁾ stays 0
        return self.out(self.layers(self.embed(symbols), state)[0])
