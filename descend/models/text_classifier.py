"""Texts to classes by a recurrent net: sentiment (many-to-one), Att-BLSTM, and a tag for every word (many-to-many).

    x_t = E[w_t];   h = layers(x);   logits = head(h)
    direction   forward (1..T), concatenated ([h→; h←]) or summed (h→ + h←, as Att-BLSTM has it)
    head        last        W h⁽ᵀ⁾ + b, the state after the last real word (of both directions, if there are two)
                attention   a weighted mean of all words; `weights` shows which ones counted
                each        one answer for every word

Tokens that are `pad` stand on the right and are never read.

Systems: rnn-task-heads, bidirectional-lstm, att-blstm
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from descend.nn.recurrent.heads import AttentionPool, EachStep, LastState
from descend.nn.recurrent.layers import Cell, Concatenated, Recurrent, Summed
from descend.ranges import Depth, Fraction, Length, Token, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import subtree

DIRECTIONS: dict[str, type[Recurrent | Concatenated]] = {
    "forward": Recurrent,
    "concatenated": Concatenated,
    "summed": Summed,
}
HEADS: dict[str, type[LastState | AttentionPool | EachStep]] = {
    "last": LastState,
    "attention": AttentionPool,
    "each": EachStep,
}


@dataclass(frozen=True)
class TextClassifierConfig:
    """The configuration of a text classifier; a recipe takes vocab and classes from its data."""

    vocab: Length = 10000
    classes: Width = 2
    embedding: Width = 128
    width: Width = 128
    depth: Depth = 1
    dropout: Fraction = 0.5
    missing: Fraction = 0.0
    """Word dropout: share of a text's words whose vectors are set to 0 in training."""
    cell: Cell = "lstm"
    direction: Literal["forward", "concatenated", "summed"] = "summed"
    head: Literal["last", "attention", "each"] = "attention"
    pad: Token = 0

    def __post_init__(self) -> None:
        for name, known in (("direction", DIRECTIONS), ("head", HEADS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} {getattr(self, name)!r} is unknown; known: {', '.join(known)}")


class TextClassifier(Pretrained):
    """tokens (b, t) -> logits (b, classes), or (b, t, classes) with a head for each word"""

    Config = TextClassifierConfig

    def __init__(self, config: TextClassifierConfig):
        super().__init__()
        c = self.config = config
        self.embed = nn.Embedding(c.vocab, c.embedding, padding_idx=c.pad)
        self.drop, self.miss = nn.Dropout(c.dropout), nn.Dropout1d(c.missing)
        self.layers = DIRECTIONS[c.direction](c.cell, c.embedding, c.width, c.depth, c.dropout)
        self.head = HEADS[c.head](c.width * (2 if c.direction == "concatenated" else 1), c.classes)
        nn.init.normal_(self.embed.weight, std=0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        h, last, lengths = self.read(tokens)
        return self.head(self.drop(h), self.drop(last), lengths)

    def read(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All states (b, t, d), the last ones (b, d), and the lengths (b); an empty text counts as one word."""
        lengths = (tokens != self.config.pad).sum(dim=1).clamp(min=1)
        h, state = self.layers(self.drop(self.miss(self.embed(tokens))), None, lengths)
        return h, state[0, -1], lengths

    @torch.no_grad()
    def weights(self, tokens: Tensor) -> Tensor:
        """How much each word counts (b, t), for a head with attention."""
        if not isinstance(self.head, AttentionPool):
            raise ValueError(f"a head {self.config.head!r} has no weights; build the model with head='attention'")
        h, _, lengths = self.read(tokens)
        return self.head.weights(h, lengths)


TINY = TextClassifierConfig(vocab=61, classes=3, embedding=12, width=16, depth=2, dropout=0.0)

LAYOUT = Layout("TextClassifier")

KEYS = [subtree("embed"), subtree("layers.layers", "layers"), subtree("head")]
