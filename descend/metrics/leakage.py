"""Do evaluation items stand in the training text? n-gram overlap finds copies, whole or in part.

    o_i = #{n-grams of item i that the training text has} / #{n-grams of item i}
    leaked      o_i ≥ least;  an item of fewer than n words is compared whole

Words are compared in lower case and without punctuation, so that white space and case hide nothing. DLN names the
problem and gives no method; n = 13 is what GPT-3's authors took (Brown et al. 2020), n = 8 suits short items.

    gap = accuracy on leaked items − accuracy on fresh ones          large where a model remembers instead of reasoning

Systems: reasoning-faithfulness-leakage
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from descend.errors import Mistake
from descend.ops.keywords import keywords
from descend.ops.ngrams import ngrams


@dataclass(frozen=True)
class Overlap:
    """How much of an item stands in the training text, and the first passage of it."""

    share: float
    passage: str = ""


class LeakFinder:
    """The n-grams of evaluation items, looked for in any number of training texts, which may come one after another."""

    def __init__(self, items: Sequence[str], n: int = 13):
        if n < 1:
            raise Mistake(f"n = {n}: an n-gram has at least 1 word")
        self.n = n
        self.grams = [cut_grams(item, n) for item in items]
        self.wanted = {gram for grams in self.grams for gram in grams}
        self.sizes = sorted({len(gram) for gram in self.wanted})
        self.seen: set[tuple[str, ...]] = set()

    def read(self, text: str) -> set[tuple[str, ...]]:
        """The items' n-grams that a training text has; they count as leaked from now on."""
        words = keywords(text)
        found = {gram for size in self.sizes for gram in ngrams(words, size) if gram in self.wanted}
        self.seen |= found
        return found

    def overlaps(self) -> list[Overlap]:
        """o of each item, by the texts that were read."""
        return [self._judge(grams) for grams in self.grams]

    def _judge(self, grams: list[tuple[str, ...]]) -> Overlap:
        hits = [gram for gram in grams if gram in self.seen]
        return Overlap(len(hits) / len(grams), " ".join(hits[0])) if hits else Overlap(0.0)


def cut_grams(item: str, n: int) -> list[tuple[str, ...]]:
    """The n-grams of an item; of a short one the item itself, of an empty one nothing."""
    words = keywords(item)
    return ngrams(words, n) if len(words) >= n else [tuple(words)] if words else []


def find_leaks(train: Iterable[str], items: Sequence[str], n: int = 13, least: float = 0.5) -> list[bool]:
    """Which items are leaked."""
    finder = LeakFinder(items, n)
    for text in train:
        finder.read(text)
    return [overlap.share >= least for overlap in finder.overlaps()]


def compare_leaked(right: Sequence[bool], leaked: Sequence[bool]) -> dict[str, float]:
    """Accuracy on leaked and on fresh items, and the gap; NaN where there are none of a kind."""
    kinds = {"leaked": True, "fresh": False}
    found = {}
    for name, kind in kinds.items():
        chosen = [r for r, is_leaked in zip(right, leaked, strict=True) if is_leaked is kind]
        found[name] = sum(chosen) / len(chosen) if chosen else float("nan")
    return {**found, "gap": found["leaked"] - found["fresh"]}
