"""Small models whose probabilities are known: the next token depends on the last one only."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.sampling.decoder import Recompute


def chain(p: Tensor, context: int = 64) -> Recompute:
    """A decoder with p[i, j] = p(next = j | last = i)."""
    table = p.log()
    return Recompute(lambda tokens: table[tokens], context)


def random_chain(k: int, seed: int, sharpness: float = 2.0) -> Tensor:
    """Random transition probabilities (k, k)."""
    z = torch.randn(k, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (sharpness * z).softmax(-1)


WORDS = ["The", "nice", "dog", "car", "woman", "house", "guy", "has", "runs", "and", "is", "drives", "turns"]
BRANCHES = {
    "The": {"nice": 0.5, "dog": 0.4, "car": 0.1},
    "nice": {"woman": 0.4, "house": 0.3, "guy": 0.3},
    "dog": {"has": 0.9, "runs": 0.05, "and": 0.05},
    "car": {"is": 0.3, "drives": 0.5, "turns": 0.2},
}


def tree() -> Tensor:
    """The books' tree of three-word sentences; a leaf repeats itself."""
    p = torch.eye(len(WORDS), dtype=torch.float64)
    p[: len(BRANCHES)] = 0
    for word, following in BRANCHES.items():
        for after, value in following.items():
            p[WORDS.index(word), WORDS.index(after)] = value
    return p


def words(tokens: list[int]) -> list[str]:
    return [WORDS[token] for token in tokens]
