"""Recurrent language model: the state carries all that was read, one word after another.

    x_t = E[w_t],   h_t = cell(h_{t-1}, x_t),   logits_t = W_hy h_t + b_y,   p(w_{t+1} | w_1 .. w_t) = softmax(logits_t)

`cell` is an RNN, an LSTM, torch's GRU or one of the books' (`descend.nn.recurrent.stepwise`), `depth` of them stacked;
the parameters do not depend on the length. `context` is the window it is trained on: a text may be longer, and with
`descend.tasks.truncated` the state is carried from window to window. DLN's next word, its music (notes as words) and
VOM's vanilla network are this model.

Systems: rnn-task-heads, vanilla-rnn, lstm, gru
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.nn.decoding.stateful import StatefulDecoder, pad_right
from descend.nn.recurrent.layers import Cell, Recurrent
from descend.ops.sequences import last
from descend.ranges import Depth, Fraction, Length, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import subtree


@dataclass(frozen=True)
class RecurrentLMConfig:
    """The configuration of a recurrent language model."""

    vocab: Length = 10000
    context: Length = 128
    """Tokens in a training window."""
    width: Width = 256
    depth: Depth = 1
    dropout: Fraction = 0.0
    cell: Cell = "lstm"


class RecurrentLM(Pretrained):
    """tokens (b, t) -> logits (b, t, v)"""

    Config = RecurrentLMConfig

    def __init__(self, config: RecurrentLMConfig):
        super().__init__()
        c = self.config = config
        self.embed = nn.Embedding(c.vocab, c.width)
        self.drop = nn.Dropout(c.dropout)
        self.layers = Recurrent(c.cell, c.width, c.width, c.depth, c.dropout)
        self.head = nn.Linear(c.width, c.vocab)
        nn.init.normal_(self.embed.weight, std=c.width**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.carry(tokens)[0]

    def carry(self, tokens: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits (b, t, v) from a state on, and the state (n, depth, b, d) after the last token."""
        h, state = self.layers(self.drop(self.embed(tokens)), state)
        return self.head(self.drop(h)), state

    def start(self, batch: int) -> Tensor:
        """The state before the first token: 0."""
        return self.layers.start(batch)

    def decoder(self) -> StatefulDecoder[Tensor]:
        """This model with its state, as `descend.sampling` writes with it."""

        def begin(tokens: Tensor, pad: Tensor) -> tuple[Tensor, Tensor]:
            tokens, lengths = pad_right(tokens, pad)
            h, state = self.layers(self.embed(tokens), None, lengths)
            return self.head(last(h, lengths)), state

        def step(tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
            logits, state = self.carry(tokens[:, None], state)
            return logits[:, 0], state

        return StatefulDecoder(self, begin, step, lambda state, rows: state[:, :, rows])

    @torch.no_grad()
    def states(self, tokens: Tensor) -> Tensor:
        """h (b, t, d) after every token: what the net remembers."""
        return self.layers(self.embed(tokens))[0]


TINY = RecurrentLMConfig(vocab=61, context=24, width=20, depth=2)

LAYOUT = Layout("RecurrentLM")

KEYS = [subtree("embed"), subtree("layers.layers", "layers"), subtree("head")]
