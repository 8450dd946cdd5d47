"""A language of known entropy, and small GPTs that learn it: what the labs of scaling laws are measured on.

    words     every triple of 16 letters is a word; its rank is drawn once, its probability is ∝ rank^−(1+a)
    text      words drawn independently, without spaces: a context holds four of them
    entropy   H(words) / 3 nats a letter: no model gets below it, and a perfect one reaches it

A small model learns the frequent words, a larger one the rare ones, too. Parameters are those outside the embeddings.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.labs._train import train
from descend.models.gpt2 import GPT2, GPT2Config
from descend.seeds import generator

LETTERS, LENGTH, WORDS = 16, 3, 4
START = LETTERS
CONTEXT = LENGTH * WORDS


@dataclass(frozen=True)
class Source:
    """Words and their probabilities."""

    spelling: Tensor
    """(4096, 3)"""
    probability: Tensor

    @classmethod
    def draw(cls, seed: int, a: float = 0.3) -> Source:
        """Which triple has which rank depends on the seed."""
        count = LETTERS**LENGTH
        index = torch.randperm(count, generator=generator(seed, 11))
        spelling = torch.stack([index // LETTERS**2, index // LETTERS % LETTERS, index % LETTERS], 1)
        weight = torch.arange(1, count + 1, dtype=torch.float64) ** -(1 + a)
        return cls(spelling, weight / weight.sum())

    @property
    def entropy(self) -> float:
        """Nats a letter."""
        return float(torch.special.entr(self.probability).sum() / LENGTH)

    def choose(self, rows: int, random: torch.Generator) -> Tensor:
        """Ranks of words (rows · 4)."""
        return torch.multinomial(self.probability, rows * WORDS, replacement=True, generator=random)

    def spell(self, words: Tensor) -> Tensor:
        """Letters (rows, 12) after a start."""
        letters = self.spelling[words].reshape(-1, CONTEXT)
        return torch.cat([torch.full((len(letters), 1), START), letters], 1)

    def text(self, rows: int, random: torch.Generator) -> Tensor:
        """The letters of words that are drawn."""
        return self.spell(self.choose(rows, random))


def build(width: int, depth: int, seed: int) -> GPT2:
    """A GPT-2 of one head; the released deviation of 0.02 is for wide models, so it is 1/√width here."""
    torch.manual_seed(seed)
    model = GPT2(GPT2Config(vocab=LETTERS + 1, context=CONTEXT, width=width, depth=depth, heads=1, dropout=0.0))
    for p in model.h.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=p.shape[1] ** -0.5)
    return model


def count_inner(model: GPT2) -> int:
    """Parameters outside the embeddings."""
    return sum(p.numel() for p in model.h.parameters()) + sum(p.numel() for p in model.ln_f.parameters())


def letter_losses(model: GPT2, text: Tensor) -> Tensor:
    """−log p of each letter (rows, 12)."""
    logits = model(text[:, :-1])[..., :LETTERS]
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), text[:, 1:], reduction="none")


def learn(model: GPT2, source: Source, steps: int, seed: int, rate: float, batch: int = 48) -> None:
    """One pass over fresh text."""
    random = generator(seed, 12)
    train(model, lambda: letter_losses(model, source.text(batch, random)).mean(), steps, rate)


def held_out_loss(model: GPT2, source: Source, rows: int = 1500) -> float:
    """On text that is the same for every model of a source: entropy + mean of log p − log q, so that words that come
    oftener in it than they should count for nothing."""
    words = source.choose(rows, generator(0, 13))
    luck = float(-source.probability[words].log().mean() / LENGTH) - source.entropy
    with torch.no_grad():
        return float(letter_losses(model, source.spell(words)).double().mean()) - luck
