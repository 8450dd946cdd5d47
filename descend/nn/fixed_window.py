"""Models that see a fixed number of words, each place with weights of its own.

    window       the last n words, one-hot or embedded, laid end to end, into a predictor
    flat         a sentence cut or filled up to T_max words, one-hot and laid end to end (T_max V numbers), into an MLP

    W concat(onehot(w_1) … onehot(w_n)) = Σ_i W_i[w_i]

so the first layer is a table with a row for every place and word, summed: 10,000 words at 100 places are 1,000,000
inputs, and none is ever multiplied by 0. What is learned of a word at one place does not hold at another, and
what lies outside the window cannot be known: the parameters grow with the window, those of a recurrent net do not.

Systems: fixed-window-models
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from descend.ops.sequences import fit_length


def input_size(words: int, vocab: int) -> int:
    """T_max V"""
    return words * vocab


class PlaceTable(nn.Module):
    """W concat(onehot(w_1) … onehot(w_n)) + b: (b, n) -> (b, outputs); a word below 0 is padding, a vector of zeros."""

    def __init__(self, places: int, vocab: int, outputs: int):
        super().__init__()
        self.places, self.vocab = places, vocab
        size = input_size(places, vocab)
        self.weight = nn.Parameter(torch.empty(size, outputs).uniform_(-(places**-0.5), places**-0.5))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, words: Tensor) -> Tensor:
        rows = words.clamp(min=0) + self.vocab * torch.arange(self.places, device=words.device)
        real = (words >= 0).to(self.weight.dtype)
        return nn.functional.embedding_bag(rows, self.weight, mode="sum", per_sample_weights=real) + self.bias


class FlatClassifier(nn.Module):
    """Words (b, t) with -1 for padding -> logits (b, classes), by an MLP over the flat one-hot sentence."""

    def __init__(self, length: int, vocab: int, hidden: int, classes: int):
        super().__init__()
        self.length = length
        self.table = PlaceTable(length, vocab, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, words: Tensor) -> Tensor:
        return cast("Tensor", self.out(self.table(fit_length(words, self.length, -1)).relu()))


class WindowPredictor(nn.Module):
    """The next word of the last n: (b, t) -> logits (b, vocab); what came before them is not read."""

    def __init__(self, n: int, vocab: int, hidden: int):
        super().__init__()
        self.n = n
        self.table = PlaceTable(n, vocab, hidden)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, words: Tensor) -> Tensor:
        if words.shape[1] < self.n:
            raise ValueError(f"{words.shape[1]} words, but the window has {self.n}; give at least that many")
        return cast("Tensor", self.out(self.table(words[:, -self.n :]).relu()))


class EmbeddedWindow(nn.Module):
    """The same with embeddings in place of one-hot words: e = concat(E[w_1] … E[w_n])"""

    def __init__(self, n: int, vocab: int, width: int, hidden: int):
        super().__init__()
        self.n = n
        self.embed = nn.Embedding(vocab, width)
        self.net = nn.Sequential(nn.Linear(n * width, hidden), nn.ReLU(), nn.Linear(hidden, vocab))

    def forward(self, words: Tensor) -> Tensor:
        return cast("Tensor", self.net(self.embed(words[:, -self.n :]).flatten(1)))
