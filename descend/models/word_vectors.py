"""Word vectors: every word a vector, learned so that it tells which words stand near it.

    W, W' in R^{V × d}     w_c the vector of a word as centre, w'_o as neighbour
    SkipGram       centre -> neighbour:     P(o | c) = exp(w'_o·w_c) / Σ_w exp(w'_w·w_c)
    CBOW           neighbours -> centre:    h = (1/m) Σ w_o over the m neighbours;  P(c | ·) ∝ exp(w'_c·h)
    GloVe          log X_ij ≈ w_i·ŵ_j + b_i + b̂_j
    GloVeTriples   log P(i|g) / P(s|g) ≈ (w_i − w_s)·ŵ_g

Which matrix holds the words' vectors: the first layer W for skip-gram (DLN, VOM); for CBOW DLN takes the SECOND layer,
as Bishop does, while the usual implementations take the first (both are here: `vectors`, `first_layer`); for GloVe the
published sum w_i + ŵ_i; for the triples w_i alone (DLD), which are defined up to one vector added to all of them.
With one neighbour CBOW is skip-gram with the roles exchanged.

Erratum: VOM 7.7 exchanges the two, saying that skip-gram predicts words from their context; 7.3.2 has it right.

Systems: skip-gram, cbow, skip-gram-negative-sampling, glove
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.ranges import Length, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

START = 0.1  # width of the initial values


@dataclass(frozen=True)
class WordVectorsConfig:
    """V words, d numbers each; a recipe takes V from its data."""

    vocab: Length = 10_000
    width: Width = 100


class SkipGram(Pretrained):
    """centres (b) -> scores of all words (b, v); or of the given words (b, n) -> (b, n)."""

    Config = WordVectorsConfig

    def __init__(self, config: WordVectorsConfig):
        super().__init__()
        self.config = config
        self.centre, self.context = table(config), table(config)

    def forward(self, centres: Tensor, words: Tensor | None = None) -> Tensor:
        w = self.centre(centres)
        if words is None:
            return nn.functional.linear(w, self.context.weight)
        return (self.context(words) * w.unsqueeze(-2)).sum(dim=-1)  # half the time of a batched product

    def vectors(self) -> Tensor:
        """W, the first layer."""
        return self.centre.weight.detach()


class CBOW(Pretrained):
    """neighbours (b, m), −1 for no word, -> scores of all words (b, v); or of the given words (b, n) -> (b, n)."""

    Config = WordVectorsConfig

    def __init__(self, config: WordVectorsConfig):
        super().__init__()
        self.config = config
        self.context, self.centre = table(config), table(config)

    def forward(self, neighbours: Tensor, words: Tensor | None = None) -> Tensor:
        there = (neighbours >= 0).unsqueeze(-1)
        w = self.context(neighbours.clamp_min(0)) * there
        h = w.sum(dim=-2) / there.sum(dim=-2).clamp_min(1)
        if words is None:
            return nn.functional.linear(h, self.centre.weight)
        return (self.centre(words) * h.unsqueeze(-2)).sum(dim=-1)

    def vectors(self) -> Tensor:
        """The second layer's rows (DLN: W is the transpose of its weight matrix, d × V)."""
        return self.centre.weight.detach()

    def first_layer(self) -> Tensor:
        """The first layer's rows, as the usual implementations take them."""
        return self.context.weight.detach()


class GloVe(Pretrained):
    """i and j (b) -> log counts (b)."""

    Config = WordVectorsConfig

    def __init__(self, config: WordVectorsConfig):
        super().__init__()
        self.config = config
        self.centre, self.context = table(config), table(config)
        self.centre_bias, self.context_bias = (nn.Embedding(config.vocab, 1) for _ in range(2))
        for bias in (self.centre_bias, self.context_bias):
            nn.init.zeros_(bias.weight)

    def forward(self, i: Tensor, j: Tensor) -> Tensor:
        dot = (self.centre(i) * self.context(j)).sum(dim=-1)
        return dot + self.centre_bias(i).squeeze(-1) + self.context_bias(j).squeeze(-1)

    def vectors(self) -> Tensor:
        """w_i + ŵ_i."""
        return (self.centre.weight + self.context.weight).detach()


class GloVeTriples(Pretrained):
    """i, s and g (b) -> log ratios (b)."""

    Config = WordVectorsConfig

    def __init__(self, config: WordVectorsConfig):
        super().__init__()
        self.config = config
        self.centre, self.context = table(config), table(config)

    def forward(self, i: Tensor, s: Tensor, g: Tensor) -> Tensor:
        return ((self.centre(i) - self.centre(s)) * self.context(g)).sum(dim=-1)

    def vectors(self) -> Tensor:
        """w_i."""
        return self.centre.weight.detach()


def table(config: WordVectorsConfig) -> nn.Embedding:
    """A vector for each word, N(0, 0.1²)."""
    found = nn.Embedding(config.vocab, config.width)
    nn.init.normal_(found.weight, std=START)
    return found


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "SkipGram": SkipGram,
    "CBOW": CBOW,
    "GloVe": GloVe,
    "GloVeTriples": GloVeTriples,
}
TINY = WordVectorsConfig(vocab=11, width=5)


def TINY_INPUT() -> Tensor:
    """Three centres."""
    return torch.tensor([0, 4, 10])


LAYOUT = Layout(architecture="SkipGram", fields={"vocab": "vocab_size", "width": "hidden_size"}, library="descend")
