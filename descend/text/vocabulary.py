"""A dictionary of words: a number for each, one for all others, and the one-hot vector of a word.

    word k of V   ->   e_k in {0, 1}^V, 1 at place k        e_i · e_j = 0,  ‖e_i − e_j‖ = √2 for every i ≠ j

So all words are equally unlike, and a vector is as long as the dictionary. `<unk>` is the last number, |V|, which makes
the dimension |V| + 1 (DLD). Places count from 0 here; DLN and VOM 12 count from 1 ("king" is the third word, place 2).

Systems: one-hot-words, word-char-ngram-tokenizers
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.embedding import one_hot

UNKNOWN = "<unk>"


def words(text: str) -> list[str]:
    """The words of a text: letters, digits and underscores in a row; marks and white space are left out."""
    return re.findall(r"\w+", text)


@dataclass(frozen=True)
class Vocabulary:
    """Known words; `size` counts `<unk>`, whose number is the last."""

    words: tuple[str, ...] = ()

    @classmethod
    def learn(cls, tokens: Iterable[str], most: int = 0, least: int = 1) -> Vocabulary:
        """The distinct tokens, sorted: those that occur `least` times, and of these the `most` frequent (0: all)."""
        counts = Counter(tokens)
        frequent = sorted((t for t, n in counts.items() if n >= least), key=lambda t: (-counts[t], t))
        if not frequent:
            raise Mistake(f"no word occurs {least} times, so the vocabulary would be empty; give more text")
        return cls(tuple(sorted(frequent[: most or None])))

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {word: n for n, word in enumerate(self.words)}

    @property
    def unknown(self) -> int:
        return len(self.words)

    @property
    def size(self) -> int:
        """|V| + 1."""
        return len(self.words) + 1

    def encode(self, tokens: Iterable[str]) -> Tensor:
        """Numbers (t); |V| for what is not known."""
        return torch.tensor([self.numbers.get(token, self.unknown) for token in tokens], dtype=torch.long)

    def decode(self, ids: Iterable[int] | Tensor) -> list[str]:
        """The words again."""
        found: list[int] = ids.tolist() if isinstance(ids, Tensor) else list(ids)
        strange = next((i for i in found if not 0 <= i < self.size), None)
        if strange is not None:
            raise Mistake(f"number {strange} is not a word: this vocabulary has 0..{self.unknown}")
        return [self.words[i] if i < self.unknown else UNKNOWN for i in found]

    def one_hot(self, tokens: Iterable[str]) -> Tensor:
        """Words -> (t, |V| + 1), a row each."""
        return one_hot(self.encode(tokens), self.size)

    def from_one_hot(self, rows: Tensor) -> list[str]:
        """The words of one-hot rows."""
        return self.decode(rows.argmax(dim=-1))

    def unknown_rate(self, tokens: Sequence[str]) -> float:
        """Share of the tokens that are not known."""
        return sum(token not in self.numbers for token in tokens) / max(len(tokens), 1)
