"""Segmentation by energy: both sentences of the book, the optimum by enumeration, and which language it was."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from descend.data.text.lexicons import ENGLISH, FRENCH
from descend.text.word_breaks import UNKNOWN, Lexicon, count_segmentations, only_letters, segment, segment_in_any

pytestmark = pytest.mark.system("segmentation-by-energy")
LEXICONS = {"English": Lexicon.by_rank(ENGLISH), "French": Lexicon.by_rank(FRENCH)}
SENTENCES = {
    "English": ("Youcantreadthisifyoudontunderstandenglish", "You can't read this if you don't understand English"),
    "French": (
        "Vousnepouvezpaslirececisivousneparlezpasfrançais",
        "Vous ne pouvez pas lire ceci si vous ne parlez pas français",
    ),
}


@pytest.mark.system("segmentation-by-energy", "both-sentences", "language")
@pytest.mark.parametrize("language", SENTENCES)
def test_both_sentences_are_recovered(language: str) -> None:
    """Letter for letter, with apostrophes and capitals, and each in its own language."""
    unspaced, spaced = SENTENCES[language]
    name, found = segment_in_any(unspaced, LEXICONS)
    assert (name, found.text) == (language, spaced)
    other = next(lexicon for key, lexicon in LEXICONS.items() if key != language)
    assert segment(unspaced, other).energy > 2 * found.energy


@pytest.mark.system("segmentation-by-energy", "optimal")
@pytest.mark.parametrize("text", ["readthisif", "understand", "hisisit", "xqread"])
def test_no_segmentation_has_a_lower_energy(text: str) -> None:
    lexicon = LEXICONS["English"]
    lowest = float("inf")
    for cuts in product((False, True), repeat=len(text) - 1):
        at = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(text)]
        pieces = [text[a:b] for a, b in pairwise(at)]
        lowest = min(lowest, sum(lexicon.energy(piece) for piece in pieces))
    assert abs(segment(text, lexicon).energy - lowest) < 1e-9
    assert count_segmentations(text) == 2 ** (len(text) - 1)


def test_frequent_words_cost_less_and_unknown_letters_most() -> None:
    lexicon = LEXICONS["English"]
    assert lexicon.energy("the") < lexicon.energy("understand") < lexicon.energy("zz") == 2 * UNKNOWN
    assert lexicon.written["cant"] == "can't"
    assert only_letters("Don't STOP, ça va") == "dontstopçava"
    assert segment("", lexicon).words == ()
