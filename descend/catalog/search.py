"""Find a system by a few words: what was typed against slugs, names, the books' entry names and notes.

    score = Σ_words  idf(word) · max over fields of  weight(field) · match(word, field)

A rare word says more than a common one (idf). A match is exact, a beginning, a part, or, when no system has the word,
a near spelling. Systems that have all the words come first.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from functools import cache

from descend.catalog.systems import System, entries, systems

WEIGHTS = {"slug": 10.0, "name": 8.0, "entries": 5.0, "family": 3.0, "note": 2.0}
EXACT, BEGINS, PART = 1.0, 0.7, 0.4


def words_of(text: str) -> list[str]:
    """Lower case, letters and digits, without the s of a plural; the books write both -isation and -ization."""
    found = re.findall(r"[a-z0-9]+", text.lower().replace("isation", "ization"))
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in found]


@cache
def fields() -> dict[str, dict[str, frozenset[str]]]:
    """slug -> field -> its words. The slug's initials count as one of its words: sdpa, mha."""
    found = {}
    for slug, s in systems().items():
        parts = slug.split("-")
        initials = ["".join(p[0] for p in parts)] if len(parts) > 2 else []
        texts = {
            "slug": [*words_of(slug), *initials],
            "name": words_of(s.name),
            "entries": [w for e in s.entries for w in words_of(entries()[e].name)],
            "family": words_of(s.family),
            "note": words_of(s.note),
        }
        found[slug] = {field: frozenset(words) for field, words in texts.items()}
    return found


@cache
def spread() -> Counter[str]:
    """word -> in how many systems it occurs."""
    return Counter(w for f in fields().values() for w in frozenset().union(*f.values()))


def match(word: str, known: frozenset[str]) -> float:
    """How well a word is met by a field's words."""
    if word in known:
        return EXACT
    if len(word) > 2 and any(k.startswith(word) for k in known):
        return BEGINS
    return PART if len(word) > 3 and any(word in k for k in known) else 0.0


def spelt(word: str) -> str:
    """The word, or the nearest one that some system has when none has it, not even as a part."""
    if any(word in known for known in spread()):
        return word
    near = difflib.get_close_matches(word, spread(), n=1, cutoff=0.75)
    return near[0] if near else word


def search(text: str, limit: int = 10) -> list[System]:
    """The systems that fit best, best first; none when nothing fits."""
    words = [spelt(w) for w in dict.fromkeys(words_of(text))]
    squeezed = re.sub(r"[^a-z0-9]", "", text.lower())
    rated = []
    for order, (slug, known) in enumerate(fields().items()):
        best = [max(weight * match(w, known[field]) for field, weight in WEIGHTS.items()) for w in words]
        value = sum(b * math.log(1 + len(systems()) / max(spread()[w], 1)) for b, w in zip(best, words, strict=True))
        whole = squeezed and squeezed in slug.replace("-", "")
        value += 1000.0 * (squeezed == slug.replace("-", "")) + 20.0 * bool(whole)
        if value:
            # Shorter slugs first among equals: the thing itself before its analyses and variants.
            rated.append((-sum(b > 0 for b in best), -value, len(slug), order, slug))
    rated.sort()
    enough = 0.15 * max((-value for _, value, *_ in rated), default=0.0)  # no tail of accidental matches
    return [systems()[slug] for _, value, *_, slug in rated if -value >= enough][:limit]
