"""Exact match, BLEU by hand, and errors by position."""

from __future__ import annotations

import math

import pytest
import torch

from descend.errors import Mistake
from descend.metrics import translation
from descend.metrics.translation import as_rows, bleu, error_by_position, exact_match, overlap
from tests.close import close


def test_exact_match() -> None:
    assert exact_match(["a b", "c ", "d"], ["a  b", "c", "e"]) == pytest.approx(2 / 3)


def test_bleu_by_hand() -> None:
    """6 words against 7: p_1 = 6/6, p_2 = 4/5, p_3 = 2/4, p_4 = 1/3, brevity exp(1 − 7/6)."""
    pytest.importorskip("sacrebleu")
    found = bleu(["the cat sat on mat now"], ["the cat sat on the mat now"])
    p = (6 / 6, 4 / 5, 2 / 4, 1 / 3)
    assert found.score == pytest.approx(100 * math.exp(1 - 7 / 6 + sum(map(math.log, p)) / 4))
    assert "tok:13a" in found.signature
    assert bleu(["same words in this line"], ["same words in this line"]).score == pytest.approx(100)


def test_without_sacrebleu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "find_spec", lambda _: None)
    with pytest.raises(Mistake, match="pip install sacrebleu"):
        bleu(["a"], ["a"])


@pytest.mark.system("teacher-forcing", "exposure")
@pytest.mark.system("teacher-forcing")
def test_errors_by_position() -> None:
    y = torch.tensor([[3, 4, 0], [3, 5, 6]])
    found = as_rows([[3, 9], [3, 5, 7, 8]], 3, 0)
    assert found.tolist() == [[3, 9, 0], [3, 5, 7]]
    close(error_by_position(found, y, 0), torch.tensor([0.0, 0.5, 1.0]))


def test_words_that_two_texts_share() -> None:
    assert overlap(["a", "b", "b"], ["b", "a", "b"]) == 1
    assert overlap(["a", "a"], ["a", "b"]) == 0.5
    assert overlap([], ["a"]) == 0 == overlap([], [])
