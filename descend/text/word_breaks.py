"""Segmentation by energy: where the words of a text without spaces begin is a latent variable.

    z            a set of boundaries between letters: 2^{n−1} of them for n letters
    E(y, z)      = Σ over the pieces of their recognition energy         a word: −log of its frequency
                                                                         no word: a price for every letter
    ẑ            = argmin_z E(y, z)        by dynamic programming:  F(j) = min_i F(i) + E(letters i..j),  F(0) = 0

Words are found by their letters alone, in lower case and without apostrophes, and are written as the lexicon has them:
"cant" is recognised as "can't". With several languages the lexicon with the lowest energy is the one that was spoken.
The frequencies follow Zipf's law from a word's place in the list: p = 1 / (rank · log(1.78 V)).

Systems: segmentation-by-energy
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

UNKNOWN = 8.0  # energy of a letter that belongs to no word


class Segmented(NamedTuple):
    """The words as they are written, and the energy of their boundaries."""

    words: tuple[str, ...]
    energy: float

    @property
    def text(self) -> str:
        """The sentence, which begins with a capital letter."""
        joined = " ".join(self.words)
        return joined[:1].upper() + joined[1:]


@dataclass(frozen=True)
class Lexicon:
    """Letters -> how the word is written, and its energy."""

    written: Mapping[str, str]
    energies: Mapping[str, float]

    @classmethod
    def by_rank(cls, words: Sequence[str]) -> Lexicon:
        """From words in the order of their frequency."""
        harmonic = math.log(1.78 * max(2, len(words)))
        keys = [only_letters(word) for word in words]
        energies = {key: math.log(rank * harmonic) for rank, key in reversed([*enumerate(keys, 1)])}
        return cls(dict(zip(reversed(keys), reversed(words), strict=True)), energies)

    @property
    def longest(self) -> int:
        return max(map(len, self.energies))

    def energy(self, piece: str) -> float:
        """Of letters taken as one word."""
        return self.energies.get(piece, UNKNOWN * len(piece))


def only_letters(text: str) -> str:
    """The letters in lower case."""
    return "".join(letter for letter in text.lower() if letter.isalpha())


def segment(text: str, lexicon: Lexicon) -> Segmented:
    """The words of a text without spaces, with the lowest energy."""
    letters = only_letters(text)
    best = [0.0, *[math.inf] * len(letters)]
    begins = [0] * (len(letters) + 1)
    for end in range(1, len(letters) + 1):
        for start in range(max(0, end - max(lexicon.longest, 1)), end):
            energy = best[start] + lexicon.energy(letters[start:end])
            if energy < best[end]:
                best[end], begins[end] = energy, start
    words, end = [], len(letters)
    while end:
        piece = letters[begins[end] : end]
        words.append(lexicon.written.get(piece, piece))
        end = begins[end]
    return Segmented(tuple(reversed(words)), best[-1])


def segment_in_any(text: str, lexicons: Mapping[str, Lexicon]) -> tuple[str, Segmented]:
    """The language with the lowest energy, and the words in it."""
    found = {name: segment(text, lexicon) for name, lexicon in lexicons.items()}
    name = min(found, key=lambda name: found[name].energy)
    return name, found[name]


def count_segmentations(text: str) -> int:
    """2^{n−1}: every gap between letters is a boundary or not."""
    return 2 ** (len(only_letters(text)) - 1)
