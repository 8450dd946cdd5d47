"""Find a system by a few words: slugs, aliases, names, the books' entry names, everyday words, notes and papers.

    score = Σ_words  idf(word) · max over fields of  weight(field) · match(word, field)

Words are compared by their stems, so that masks, masking and masked are one. A rare word says more than a common one
(idf). A match is exact, a beginning, a part, or, when no system has the word, a near spelling. What is a system's slug
or alias word for word comes first; then the systems that have all the words.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections import Counter
from functools import cache

from descend.catalog.plain import plain_words
from descend.catalog.references import references_of
from descend.catalog.systems import SPEC, System, entries, systems
from descend.errors import Mistake

WEIGHTS = {
    "slug": 10.0,
    "alias": 8.0,
    "name": 8.0,
    "entries": 5.0,
    "family": 3.0,
    "plain": 2.0,
    "note": 2.0,
    "papers": 2.5,
}
EXACT, BEGINS, PART = 1.0, 0.7, 0.4

# The books write both British and American English; the order matters.
SPELLINGS = (
    ("isation", "ization"), ("ising", "izing"), ("ised", "ized"), ("iser", "izer"), ("ise", "ize"), ("yse", "yze"),
    ("metriz", "meteriz"), ("metris", "meteriz"), ("our", "or"), ("centre", "center"), ("é", "e"), ("'s", ""),
)  # fmt: skip
ENDINGS = ("ization", "izing", "ized", "izer", "ize")  # all of one verb: normalize
FILLERS = frozenset(
    {"the", "of", "and", "for", "in", "to", "with", "by", "vs", "is", "are", "be", "a", "an", "it", "we", "you"}
    | {"why", "how", "what", "does", "do", "use", "using"}
)


def stem_words(text: str) -> list[str]:
    """Lower case, letters and digits, without endings: "Normalising flows" -> normaliz, flow."""
    text = text.lower()
    for british, american in SPELLINGS:
        text = text.replace(british, american)
    found = [stem(w) for w in re.findall(r"[a-z0-9]+", text)]
    return [w for w in found if w not in FILLERS] or found


def stem(word: str) -> str:
    """The word without the endings of plurals and verbs; short words stay as they are."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-3] + "y" if word.endswith("ies") else word[:-1]
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word.removesuffix(ending) + "iz"
    for ending in ("ation", "ating", "ated", "ate", "ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            word = word.removesuffix(ending)
            # clipping -> clipp -> clip
            return word[:-1] if word[-1] == word[-2] and word[-1] not in "sz" else word
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def squeeze(text: str) -> str:
    """The stems as one word, so that layernorm is layer norm."""
    return "".join(stem_words(text))


@cache
def aliases() -> dict[str, list[str]]:
    """slug -> what people also call it: abbreviations, other spellings, the terms of the field and of the books."""
    found: dict[str, list[str]] = {}
    with (SPEC / "aliases.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            found.setdefault(row["system"], []).append(row["alias"])
    return found


@cache
def systems_by_name() -> dict[str, list[str]]:
    """squeezed slug or alias -> the systems that bear it: the slug's own, else all that have the alias."""
    found: dict[str, list[str]] = {}
    for slug, names in aliases().items():
        for name in dict.fromkeys(map(squeeze, names)):
            found.setdefault(name, []).append(slug)
    return found | {squeeze(slug): [slug] for slug in systems()}


@cache
def fields() -> dict[str, dict[str, frozenset[str]]]:
    """slug -> field -> the stems in it. The slug's initials count as one of its words: sdpa, mha."""
    found = {}
    for slug, s in systems().items():
        parts = slug.split("-")
        initials = ["".join(p[0] for p in parts)] if len(parts) > 2 else []
        texts = {
            "slug": [*stem_words(slug), *initials],
            "alias": [w for alias in aliases().get(slug, ()) for w in stem_words(alias)],
            "name": stem_words(s.name),
            "entries": [w for e in s.entries for w in stem_words(entries()[e].name)],
            "family": stem_words(s.family),
            "plain": stem_words(plain_words().get(slug, "")),
            "note": stem_words(s.note),
            "papers": [w for r in references_of(slug) for w in stem_words(f"{r.authors} {r.title}")],
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


def correct(word: str) -> str:
    """The word, or the nearest one that some system has when none has it, not even as a part."""
    if any(word in known for known in spread()):
        return word
    near = difflib.get_close_matches(word, spread(), n=1, cutoff=0.75)
    return near[0] if near else word


def search(text: str, limit: int = 10) -> list[System]:
    """The systems that fit best, best first; none when nothing fits."""
    words = [correct(w) for w in dict.fromkeys(stem_words(text))]
    squeezed = squeeze(text)
    named = systems_by_name().get(squeezed) or systems_by_name().get("".join(words), [])
    rarity = {w: math.log(1 + len(systems()) / max(spread()[w], 1)) for w in words}
    rated = []
    for order, (slug, known) in enumerate(fields().items()):
        best = {w: max(weight * match(w, known[field]) for field, weight in WEIGHTS.items()) for w in words}
        value = sum(best[w] * rarity[w] for w in words) + 20.0 * bool(squeezed and squeezed in squeeze(slug))
        if value or slug in named:
            covered = sum(rarity[w] for w in words if best[w] > WEIGHTS["note"]) / sum(rarity.values())
            # Shorter slugs first among equals: the thing itself before its analyses and variants.
            key = (slug not in named, -sum(b > 0 for b in best.values()), -value, len(slug), order, slug)
            rated.append((key, covered))
    rated.sort()
    top = max((-key[2] for key, _ in rated), default=0.0)
    kept = [key for key, covered in rated if not key[0] or is_related(-key[2] / top, covered)]
    return [systems()[key[-1]] for key in kept][:limit]


def is_related(value: float, covered: float) -> bool:
    """No tail of accidental matches: half as good as the best, or most of what was typed is there."""
    return value >= 0.5 or (covered >= 0.6 and value >= 0.15)


def resolve(name: str) -> System:
    """The system of this slug or alias; anything else is a mistake that names the nearest."""
    if name in systems():
        return systems()[name]
    named = systems_by_name().get(squeeze(name), [])
    if len(named) == 1:
        return systems()[named[0]]
    near = named or [s.slug for s in search(name.replace("-", " "), 3)]
    hint = f" {'Several have that name' if named else 'Nearest'}: {', '.join(near)}." if near else ""
    raise Mistake(f"there is no system '{name}'.{hint} Search with: descend find {name.replace('-', ' ')}")
