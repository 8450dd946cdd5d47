"""Words by their vectors: neighbours and analogies.

    neighbours of v      the words of highest cosine with v
    a : b = c : ?        the word nearest to v(b) − v(a) + v(c) by cosine, the three words themselves left out

king − man + woman ≈ queen when the differences queen − king and woman − man are equal: royalty and gender are
directions that add. Without leaving a, b and c out the answer is mostly c or b itself: that practice is usual, and not
in the books.

Systems: embedding-analogies
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from descend.errors import Mistake, nearest
from descend.ops.math.vectors import unit


def neighbours(e: Tensor, query: Tensor, k: int, exclude: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
    """Numbers (k) and cosines (k) of the words nearest to a vector, best first."""
    cosine = unit(e) @ unit(query)
    cosine[list(exclude)] = -torch.inf
    found = cosine.topk(min(k, len(e) - len(set(exclude))))
    return found.indices, found.values


def analogies(e: Tensor, questions: Tensor) -> Tensor:
    """Questions (n, 3) of a, b, c -> the numbers (n) of the words that answer them."""
    a, b, c = e[questions].unbind(1)
    cosine = unit(b - a + c) @ unit(e).mT
    return cosine.scatter(1, questions, -torch.inf).argmax(dim=1)


def analogy_accuracy(e: Tensor, quadruples: Tensor) -> float:
    """Share of the rows a : b = c : d (n, 4) that are answered with d."""
    return float((analogies(e, quadruples[:, :3]) == quadruples[:, 3]).double().mean())


class Words:
    """Vectors with their words, asked by name."""

    def __init__(self, words: Sequence[str], vectors: Tensor):
        if len(words) != len(vectors):
            raise Mistake(
                f"{len(words)} words for {len(vectors)} vectors: they do not belong together; "
                f"use the tokenizer.json that was saved with the model"
            )
        self.words, self.vectors = list(words), vectors
        self.numbers = {word: n for n, word in enumerate(words)}

    def number(self, word: str) -> int:
        if word not in self.numbers:
            raise Mistake(f"the word {word!r} has no vector.{nearest(word, self.words)} Choose one from the vocabulary")
        return self.numbers[word]

    def __getitem__(self, word: str) -> Tensor:
        return self.vectors[self.number(word)]

    def near(self, word: str, k: int = 5) -> list[tuple[str, float]]:
        """The k nearest other words and their cosines."""
        n = self.number(word)
        ids, cosine = neighbours(self.vectors, self.vectors[n], k, [n])
        return [(self.words[i], c) for i, c in zip(ids.tolist(), cosine.tolist(), strict=True)]

    def analogy(self, a: str, b: str, c: str) -> str:
        """a is to b as c is to ..."""
        question = torch.tensor([[self.number(word) for word in (a, b, c)]])
        return self.words[int(analogies(self.vectors, question))]
