"""Which words stand near which: windows, pairs and counts of a text, as tensors.

    pairs          (x_t, x_{t+δ}) for every δ in −c..c but 0 that stays in the text (and in the sentence)
    windows        the 2c neighbours of every x_t, −1 where there is none: M = 2c + 1 words in DLN's counting
    X_ij           Σ over pairs (i, j) of 1, or of 1 / |δ| as published GloVe weighs them
    P(i | g)       X_ig / Σ_k X_kg
    subsampling    a word of frequency f stays with probability min(1, √(t / f)): fewer pairs of "the" (word2vec)

"the cat sat on the mat" has 10 pairs at c = 1 and 18 at c = 2. No loop over words: every step is one tensor operation.

Systems: skip-gram, cbow, glove
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from descend.data.images.warp import Source
from descend.errors import Mistake
from descend.losses.word_vectors import noise_weights


def offsets(c: int) -> Tensor:
    """−c, .., −1, 1, .., c."""
    if c < 1:
        raise Mistake(f"--data.window {c}: a window reaches at least 1 word to each side")
    return torch.tensor([d for d in range(-c, c + 1) if d])


def windows(words: Tensor, c: int, sentence: Tensor | None = None) -> Tensor:
    """The neighbours (t, 2c) of every word, −1 where the text (or the word's sentence) has none."""
    t = len(words)
    at = torch.arange(t)[:, None] + offsets(c)
    inside = (at >= 0) & (at < t)
    at = at.clamp(0, max(t - 1, 0))
    if sentence is not None:
        inside &= sentence[at] == sentence[:, None]
    return torch.where(inside, words[at], -1)


def pairs(words: Tensor, c: int, sentence: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(centres, neighbours), in the order of the text."""
    near = windows(words, c, sentence)
    return words[:, None].expand_as(near)[near >= 0], near[near >= 0]


@dataclass(frozen=True)
class Counts:
    """The cells of X that are not 0: word i, context word g, and X_ig."""

    i: Tensor
    g: Tensor
    x: Tensor
    vocab: int

    def conditional(self) -> Tensor:
        """P(i | g) of every cell."""
        return self.x / torch.zeros(self.vocab, dtype=self.x.dtype).index_add(0, self.g, self.x)[self.g]

    def table(self) -> Tensor:
        """X (v, v): word by context word."""
        x = torch.zeros(self.vocab, self.vocab, dtype=self.x.dtype)
        x[self.i, self.g] = self.x
        return x


def one_each(distance: Tensor) -> Tensor:
    """Every pair counts 1."""
    return torch.ones_like(distance)


def by_distance(distance: Tensor) -> Tensor:
    """A pair at distance |δ| counts 1 / |δ|."""
    return 1 / distance


def cooccurrence(
    words: Tensor,
    c: int,
    vocab: int,
    sentence: Tensor | None = None,
    weight_of: Callable[[Tensor], Tensor] = by_distance,
) -> Counts:
    """X of a text."""
    near = windows(words, c, sentence)
    there = near >= 0
    weight = weight_of(offsets(c).abs().double()).expand(near.shape)[there]
    cell = (words[:, None] * vocab + near)[there]
    which, place = cell.unique(return_inverse=True)
    x = torch.zeros(len(which), dtype=torch.float64).index_add(0, place, weight)
    return Counts(which // vocab, which % vocab, x.float(), vocab)


def triples(counts: Counts, random: torch.Generator, n: int) -> dict[str, Tensor]:
    """n times (i, s, g) and r = log P(i|g) / P(s|g): a cell, and another of the same g. Zeros are never drawn."""
    order = counts.g.argsort(stable=True)
    i, g, p = counts.i[order], counts.g[order], counts.conditional()[order]
    many = torch.bincount(g, minlength=counts.vocab)
    first = many.cumsum(0) - many
    cell = torch.randint(len(g), (n,), generator=random)
    step = (torch.rand(n, generator=random) * (many[g[cell]] - 1).clamp_min(1)).long() + 1
    other = first[g[cell]] + (cell - first[g[cell]] + step) % many[g[cell]]  # never the cell itself, unless alone
    return {"i": i[cell], "s": i[other], "g": g[cell], "r": (p[cell] / p[other]).log()}


def subsample(words: Tensor, vocab: int, threshold: float, random: torch.Generator) -> Tensor:
    """The words that stay; a threshold of 0 keeps all."""
    if not threshold:
        return words
    frequency = torch.bincount(words, minlength=vocab) / len(words)
    keep = (threshold / frequency.clamp_min(1e-12)).sqrt()
    return words[torch.rand(len(words), generator=random) < keep[words]]


class Draw(Protocol):
    """u (b, k), uniform in −1..1, -> words (b, k); with near (b, m) none of these (−1 stands for no word)."""

    def __call__(self, u: Tensor, near: Tensor | None = None) -> Tensor: ...


def noise(counts: Tensor, power: float = 0.75) -> Draw:
    """Noise words with probability ∝ count^power, of all words or of those that are not near."""
    p = noise_weights(counts, power)
    edges, last = p.cumsum(0), int(counts.nonzero()[-1])

    def draw(u: Tensor, near: Tensor | None = None) -> Tensor:
        share = (u.double() + 1) / 2
        if near is None:
            return torch.searchsorted(edges, share, right=True).clamp_max(last)
        far = torch.cat([p, p.new_zeros(1)]).repeat(len(near), 1)  # one place more, for no word
        far = far.scatter(1, near.where(near >= 0, len(p)), 0)[:, :-1]
        if not far.any(dim=1).all():
            raise Mistake("no word is outside the window: use a smaller --data.window or --noise.words any")
        found = torch.searchsorted(far.cumsum(1), share * far.sum(1, keepdim=True), right=True)
        return torch.minimum(found, (far > 0).long().cumsum(1).argmax(1, keepdim=True))  # rounding, at 1

    return draw


class WithNoise:
    """A stream of pairs x, y whose words (b, 1 + k) are y and k noise words, made of the u (b, k) of each pair; none of
    the words `near` (b, m), if the pairs have them.
    """

    def __init__(self, source: Source, draw: Draw):
        self.source, self.draw = source, draw

    def __next__(self) -> dict[str, Tensor]:
        batch = next(self.source)
        noise_words = self.draw(batch.pop("u"), batch.pop("near", None))
        return {**batch, "words": torch.cat([batch["y"][:, None], noise_words], dim=1)}

    def state_dict(self) -> dict[str, Any]:
        return self.source.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.source.load_state_dict(state)
