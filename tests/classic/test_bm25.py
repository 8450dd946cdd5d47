"""Keyword search: the sum of its formula, word by word, and what it does with words that nobody or everybody has."""

from __future__ import annotations

import math

import pytest
import torch

from descend.classic.bm25 import BM25
from descend.errors import Mistake
from tests.close import close

DOCUMENTS = [
    "the cat sat on the mat",
    "the dog ran after the cat and the cat ran",
    "gradient descent goes down the slope",
    "a slope",
]


def by_hand(query: str, document: str, k1: float = 1.2, b: float = 0.75) -> float:
    """s(q, d), one word after another."""
    texts = [text.split() for text in DOCUMENTS]
    mean, words, total = sum(map(len, texts)) / len(texts), document.split(), 0.0
    for word in query.split():
        n, f = sum(word in text for text in texts), words.count(word)
        idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
        total += idf * f * (k1 + 1) / (f + k1 * (1 - b + b * len(words) / mean))
    return total


@pytest.mark.system("cross-and-bi-encoder", "keyword-baseline")
@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (2.0, 0.0), (0.5, 1.0)])
def test_the_score_is_the_sum_of_the_formula(k1: float, b: float) -> None:
    queries = ["the cat", "cat cat slope", "gradient ran zebra"]
    found = BM25(k1, b).fit(DOCUMENTS).score(queries)
    expected = torch.tensor([[by_hand(q, d, k1, b) for d in DOCUMENTS] for q in queries], dtype=torch.float64)
    close(found, expected)


@pytest.mark.system("cross-and-bi-encoder", "keyword-baseline")
def test_the_best_come_first_and_of_equals_the_first() -> None:
    search = BM25().fit([*DOCUMENTS, DOCUMENTS[0]])
    scores, numbers = search.search(["cat on a mat", "zebra"], 3)
    assert numbers[0].tolist() == [0, 4, 3]
    assert scores[0, 0] == scores[0, 1]
    assert numbers[1].tolist() == [0, 1, 2]  # nothing fits: all are equal
    assert not scores[1].any()


def test_case_and_marks_do_not_count_and_words_may_be_split_in_another_way() -> None:
    assert BM25().fit(["The CAT.", "a dog"]).search(["cat?"], 1)[1].tolist() == [[0]]
    letters = BM25(split=list).fit(["abc", "xyz"])
    assert letters.search(["zzz"], 1)[1].tolist() == [[1]]


def test_mistakes() -> None:
    with pytest.raises(Mistake, match="there are no documents"):
        BM25().fit([])
    with pytest.raises(Mistake, match="b between 0 and 1"):
        BM25(b=2.0)
