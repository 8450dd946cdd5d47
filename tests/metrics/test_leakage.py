"""Evaluation items planted in a training text are found, whole or in part, and no others."""

from __future__ import annotations

import math
import random

import pytest

from descend.errors import Mistake
from descend.metrics.leakage import LeakFinder, compare_leaked, cut_grams, find_leaks

SLUG = "reasoning-faithfulness-leakage"
WORDS = [a + b for a in ("ba", "ke", "li", "mo", "nu", "ra", "so", "ti") for b in ("n", "s", "r", "l", "m", "d")]


def texts(count: int, length: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=length)) for _ in range(count)]


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "planted-duplicates")
def test_planted_items_are_found_and_no_others() -> None:
    items, pages = texts(40, 20, 0), texts(30, 400, 1)
    planted = {3, 17, 25}
    for page, i in enumerate(sorted(planted)):
        words = pages[page].split()
        copy = items[i].upper().replace(" ", ",  ") + "!"  # case, white space and punctuation hide nothing
        pages[page] = " ".join([*words[:200], copy, *words[200:]])
    partly = items[30].split()[:14]  # 14 of its 20 words: 2 of its 8 13-grams
    pages[9] += " " + " ".join(partly)
    assert [i for i, leaked in enumerate(find_leaks(pages, items)) if leaked] == sorted(planted)
    assert [i for i, leaked in enumerate(find_leaks(pages, items, least=0.25)) if leaked] == [3, 17, 25, 30]
    finder = LeakFinder(items)
    for text in pages:
        finder.read(text)
    overlaps = finder.overlaps()
    assert (overlaps[30].share, overlaps[30].passage) == (0.25, " ".join(partly[:13]))
    assert all(overlaps[i].share == 1 for i in planted)
    assert sum(overlap.share for overlap in overlaps) == 3.25


@pytest.mark.system(SLUG, "planted-duplicates")
def test_overlaps_are_those_of_a_loop() -> None:
    items, [page] = texts(30, 8, 2), texts(1, 3000, 3)
    words = page.split()
    seen = {tuple(words[k : k + 3]) for k in range(len(words) - 2)}
    finder = LeakFinder(items, 3)
    finder.read(page)
    for item, overlap in zip(items, finder.overlaps(), strict=True):
        grams = [tuple(item.split()[k : k + 3]) for k in range(6)]
        assert overlap.share == sum(gram in seen for gram in grams) / 6


def test_short_and_empty_items() -> None:
    assert cut_grams("What is 2 + 2?", 13) == [("what", "is", "2", "2")]
    assert cut_grams("..", 13) == []
    assert find_leaks(["He asked: what is 2 + 2? Four."], ["What is 2 + 2?", "What is 3?", ""]) == [True, False, False]
    with pytest.raises(Mistake, match="at least 1 word"):
        LeakFinder([], 0)


def test_accuracy_on_leaked_and_on_fresh_items() -> None:
    told = compare_leaked([True, True, False, False, True], [True, True, False, False, False])
    assert told == {"leaked": 1.0, "fresh": pytest.approx(1 / 3), "gap": pytest.approx(2 / 3)}
    assert math.isnan(compare_leaked([True], [False])["leaked"])
