"""GloVe as DLD 6.7 tells it (Algorithm 1): stochastic gradient descent on triples of words.

    given P(i | g), the probability of word i near word g
    repeat   draw (i, s, g),  i ≠ s
             r̂ = (w_i − w_s)·ŵ_g        r = log P(i|g) / P(s|g)        δ = 2 (r̂ − r)
             w_i ← w_i − η δ ŵ_g        w_s ← w_s + η δ ŵ_g        ŵ_g ← ŵ_g − η δ (w_i − w_s)
    return   w

The loss can reach 0 when d is at least the rank of log P with its column means taken out, which is |V| − 1 at most. A
vector added to all w_i changes no r̂. A triple with a zero probability has no r and is never drawn. The published GloVe,
weighted least squares with biases, is `models.word_vectors.GloVe`.

Systems: glove
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from descend.errors import Mistake

Array = NDArray[np.float64]
START = 0.1  # width of the initial values


@dataclass
class GloVeByTriples:
    """Word vectors w and context vectors ŵ, (V, d) each."""

    w: Array
    context: Array

    @classmethod
    def start(cls, vocab: int, width: int, random: np.random.Generator) -> GloVeByTriples:
        """N(0, 0.1²)."""
        return cls(*(START * random.standard_normal((vocab, width)) for _ in range(2)))

    def scores(self) -> Array:
        """r̂ (i, s, g)."""
        dots: Array = self.w @ self.context.T
        return dots[:, None] - dots[None]

    def loss(self, p: Array) -> float:
        """The mean of (r̂ − r)² over all triples that can be drawn."""
        i, s, g = drawable(p)
        return float(np.mean((self.scores()[i, s, g] - ratios(p)[i, s, g]) ** 2))

    def fit(self, p: Array, rate: float, steps: int, random: np.random.Generator) -> GloVeByTriples:
        """This many steps, one triple each."""
        which = np.stack(drawable(p), axis=1)
        r = ratios(p)
        w, context = self.w, self.context
        for i, s, g in which[random.integers(len(which), size=steps)]:
            apart = w[i] - w[s]
            delta = 2 * rate * (apart @ context[g] - r[i, s, g])
            change = delta * context[g]
            context[g] -= delta * apart
            w[i] -= change
            w[s] += change
        return self


def ratios(p: Array) -> Array:
    """r (i, s, g) = log P(i|g) − log P(s|g); without a meaning where a probability is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(p)
        found: Array = log[:, None] - log[None]
    return found


def drawable(p: Array) -> tuple[NDArray[np.int64], ...]:
    """All (i, s, g) with i ≠ s and both probabilities above 0."""
    if p.ndim != 2 or (p < 0).any():
        raise Mistake("P(i|g) must be a table of probabilities, words by context words, none negative")
    there = p > 0
    found = (there[:, None] & there[None] & ~np.eye(len(p), dtype=bool)[..., None]).nonzero()
    if not len(found[0]):
        raise Mistake("no two words share a context word, so there is no triple to learn from; give more text")
    return found


def sufficient_width(p: Array) -> int:
    """The rank of log P with its column means taken out: the smallest d for which the loss can reach 0."""
    log = np.log(p)
    return int(np.linalg.matrix_rank(log - log.mean(axis=0)))
