"""Copies among documents, in one walk: the first of equal and of nearly equal ones is kept.

    equal          the same words in the same order; white space, case and punctuation make no difference
    nearly equal   J(a, b) ≥ least for the shingles of some kept b that a meets in a band (`ops.minhash`)

Every meeting is checked by the true J, so nothing is left out that is not that similar; what is missed is what does not
meet: 1 − P(meet) of the pairs.

Systems: corpus-preparation
"""

from __future__ import annotations

from dataclasses import dataclass, field

import xxhash

from descend.ops.keywords import keywords
from descend.ops.minhash import MinHash, Numbers, jaccard, shingles

WORDS = 5  # of a shingle


@dataclass
class EqualCopies:
    """The documents that were kept, by a digest of their words."""

    seen: dict[bytes, str] = field(default_factory=dict)

    def find(self, text: str, where: str) -> str:
        """The kept document with the same words, or nothing: then this one is kept."""
        key = xxhash.xxh128_digest(" ".join(keywords(text) or text.split()).encode())
        found = self.seen.setdefault(key, where)
        return "" if found == where else found


class NearCopies:
    """The documents that were kept, by their bands and shingles."""

    def __init__(self, least: float, bands: int = 32, rows: int = 4, words: int = WORDS, seed: int = 0):
        self.least, self.words, self.hash = least, words, MinHash(bands, rows, seed)
        self.kept: list[tuple[str, Numbers]] = []
        self.bands: dict[tuple[int, bytes], list[int]] = {}

    def find(self, text: str, where: str) -> tuple[str, float]:
        """The most similar kept document and J, if J is large enough; else ("", 0), and this one is kept."""
        found = shingles(keywords(text), self.words)
        if not len(found):
            return "", 0.0
        keys = self.hash.band_keys(self.hash.sign(found))
        met = sorted({i for key in keys for i in self.bands.get(key, ())})
        best = max(((jaccard(found, self.kept[i][1]), -i) for i in met), default=(0.0, 0))
        if best[0] >= self.least:
            return self.kept[-best[1]][0], best[0]
        for key in keys:
            self.bands.setdefault(key, []).append(len(self.kept))
        self.kept.append((where, found))
        return "", 0.0
