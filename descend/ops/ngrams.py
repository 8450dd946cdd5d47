"""n-grams: n tokens in a row as one feature.

    (x_1 … x_n), (x_2 … x_{n+1}), …        T tokens give T − n + 1 of them (none if T < n)
    possible: V^n                          10⁸ pairs and 10¹² triples at V = 10,000, most of which no text ever has

What is further apart than n tokens is missed, but pairs already tell "good, not bad" from "bad, not good", which a bag
of single words cannot.

Systems: word-char-ngram-tokenizers
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import islice
from typing import TypeVar

from descend.errors import Mistake

Token = TypeVar("Token", bound=Hashable)


def ngrams(tokens: Sequence[Token], n: int) -> list[tuple[Token, ...]]:
    """All n-grams, in their order."""
    if n < 1:
        raise Mistake(f"n = {n}: an n-gram has at least 1 token")
    return list(zip(*(islice(tokens, k, None) for k in range(n)), strict=False))


def possible(vocab: int, n: int) -> int:
    """V^n."""
    return vocab**n


def unseen(train: Sequence[Token], new: Sequence[Token], n: int) -> int:
    """How many n-grams of a new text the training text does not have."""
    seen = set(ngrams(train, n))
    return sum(gram not in seen for gram in ngrams(new, n))
