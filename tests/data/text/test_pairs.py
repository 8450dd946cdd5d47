"""Next-sentence pairs: half of each kind, the next sentence of the same document, or one of another document."""

from __future__ import annotations

import pytest
import torch

from descend.data.text.pairs import FOLLOWS, documents, elsewhere, next_sentence_pairs
from descend.errors import Mistake

TEXT = [[f"Sentence {i} of document {d} is here." for i in range(4 + d)] for d in range(6)]


@pytest.mark.system("next-sentence-prediction")
@pytest.mark.system("next-sentence-prediction", "pairs")
def test_labels_are_balanced_and_true() -> None:
    pairs = next_sentence_pairs(TEXT, seed=3)
    where = {s: (d, i) for d, document in enumerate(TEXT) for i, s in enumerate(document)}
    assert len(pairs) == sum(len(d) - 1 for d in TEXT)
    assert abs(2 * sum(p.y for p in pairs) - len(pairs)) <= 1
    for p in pairs:
        (d, i), (e, j) = where[p.a], where[p.b]
        assert (e, j) == (d, i + 1) if p.y == FOLLOWS else e != d
    assert next_sentence_pairs(TEXT, seed=3) == pairs
    assert next_sentence_pairs(TEXT, seed=4) != pairs


@pytest.mark.system("next-sentence-prediction")
@pytest.mark.system("next-sentence-prediction", "pairs")
def test_every_sentence_elsewhere_is_equally_likely() -> None:
    owner = torch.tensor([0, 0, 0, 1, 1, 2])
    drawn = elsewhere(owner, torch.full((6000,), 1), torch.Generator().manual_seed(0))
    counts = torch.bincount(drawn, minlength=6)
    assert counts[3:5].tolist() == [0, 0]
    assert (counts[[0, 1, 2, 5]] - 1500).abs().max() < 150


def test_documents_and_sentences_of_a_text() -> None:
    text = "The first sentence is this one. And this is the second!\nIs it?\n\n\nAnother document begins here."
    assert documents(text) == [
        ["The first sentence is this one.", "And this is the second!"],
        ["Another document begins here."],
    ]
    with pytest.raises(Mistake, match="two documents or more"):
        next_sentence_pairs([["only one"]])
