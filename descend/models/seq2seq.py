"""Recurrent encoder-decoder: read the source, then write the target token by token.

    encoder     h_1 .. h_T over the source;   fixed context c = h_T (MF 17.1, S940 4.5, DLN)
    decoder     s_t = f(s_{t-1}, y_{t-1}, context),   logits_t = W out_t + b
    context     start        s_0 = c                                 (Sutskever et al. 2014)
                every-step   c is read with every word               (Cho et al. 2014)
                current      attention from s_t                      (Luong et al. 2015)
                previous     attention from s_{t-1}                  (Bahdanau et al. 2014)

With a fixed context the encoder reads forward and everything must fit into one vector: the longer the source, the more
is lost. With attention it reads in both directions, summed, and every step looks at all of its states. For an LSTM the
cell state is passed on too (MF does not say so). Targets begin with `start` and end with `end`; `pad` fills sources on
the right. Training gives the decoder the true words before (teacher forcing), writing its own.

Systems: rnn-encoder-decoder, rnn-attention-decoder, rnn-task-heads
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.nn.decoding.stateful import StatefulDecoder
from descend.nn.decoding.with_source import evaluate_only
from descend.nn.recurrent.decoders import Carried, Context, Current, EveryStep, FromStart, Previous, Score
from descend.nn.recurrent.layers import Cell, Recurrent, Summed
from descend.ops.sequences import real
from descend.ranges import Depth, Fraction, Length, Token, Whole, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import subtree


@dataclass(frozen=True)
class Seq2SeqConfig:
    """The configuration of a recurrent encoder-decoder."""

    vocab: Length = 10000
    width: Width = 256
    depth: Depth = 1
    dropout: Fraction = 0.1
    cell: Cell = "lstm"
    context: Context = "previous"
    score: Score = "additive"
    """For attention only."""
    pad: Token = 0
    start: Whole = 0
    end: Token = 1


Target = FromStart | EveryStep | Current | Previous


def target_side(c: Seq2SeqConfig) -> Target:
    """The decoder that the context asks for."""
    sizes = c.cell, c.width, c.width, c.depth, c.dropout
    kinds: dict[str, Callable[[], Target]] = {
        "start": lambda: FromStart(*sizes),
        "every-step": lambda: EveryStep(*sizes),
        "current": lambda: Current(*sizes, c.score),
        "previous": lambda: Previous(*sizes, c.score),
    }
    if c.context not in kinds:
        raise ValueError(f"context {c.context!r} is unknown; known: {', '.join(kinds)}")
    return kinds[c.context]()


class Seq2Seq(Pretrained):
    """source (b, s) and target (b, t) -> logits (b, t, v)"""

    Config = Seq2SeqConfig

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        c = self.config = config
        self.embed = nn.Embedding(c.vocab, c.width)
        self.target_embed = nn.Embedding(c.vocab, c.width)
        self.drop = nn.Dropout(c.dropout)
        self.target = target_side(c)
        looks = isinstance(self.target, Current | Previous)
        self.encoder = (Summed if looks else Recurrent)(c.cell, c.width, c.width, c.depth, c.dropout)
        self.head = nn.Linear(c.width, c.vocab)

    def forward(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` (b, s) is True for the real tokens of the source; none: all but `pad`, after the first."""
        out, _, _ = self.target(self.drop(self.target_embed(target)), self.encode(source, mask))
        return self.head(self.drop(out))

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Carried:
        """The decoder before its first word."""
        lengths = (source != self.config.pad if mask is None else mask).sum(dim=1).clamp(min=1)
        h, state = self.encoder(self.drop(self.embed(source)), None, lengths)
        return self.target.begin(h, state, real(lengths, source.shape[1]))

    @torch.no_grad()
    def alignment(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """(b, t, s): where each target position looks in the source."""
        with evaluate_only(self):
            _, weights, _ = self.target(self.target_embed(target), self.encode(source, mask))
        if weights is None:
            raise ValueError(f"a context {self.config.context!r} has no alignment; use current or previous")
        return weights

    @torch.inference_mode()
    def decoder(self, source: Tensor, mask: Tensor | None = None) -> StatefulDecoder[Carried]:
        """This model, having read these sources, as `descend.sampling` writes with it."""
        with evaluate_only(self):
            read = self.encode(source, mask)

        def step(tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
            out, _, state = self.target(self.target_embed(tokens[:, None]), carried)
            return self.head(out[:, -1]), carried._replace(state=state)

        def begin(tokens: Tensor, pad: Tensor) -> tuple[Tensor, Carried]:
            if len(tokens) != len(source) or pad.any():
                raise ValueError(f"{len(source)} sources need as many beginnings of one length, not {len(tokens)}")
            out, _, state = self.target(self.target_embed(tokens), read)
            return self.head(out[:, -1]), read._replace(state=state)

        return StatefulDecoder(self, begin, step, Carried.take)


TINY = Seq2SeqConfig(vocab=61, width=20, depth=2, dropout=0.0)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two sources and the beginnings of their targets."""
    random = torch.Generator().manual_seed(0)
    return torch.randint(1, 61, (2, 7), generator=random), torch.randint(61, (2, 5), generator=random)


LAYOUT = Layout("Seq2Seq")

KEYS = [
    *(subtree(name) for name in ("embed", "target_embed", "target.score", "target.join", "head")),
    subtree("encoder.layers", "encoder"),
    subtree("target.layers.layers", "target"),
]
