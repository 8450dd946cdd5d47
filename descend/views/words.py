"""What word vectors show: a map of the frequent words, nearest neighbours, and how isotropic the vectors are."""

from __future__ import annotations

from torch import Tensor

from descend.contracts import Exhibit
from descend.metrics.geometry import anisotropy, center_rows, flat_map, without_top
from descend.metrics.word_vectors import Words
from descend.text.standardize import STOP_WORDS
from descend.text.vocabulary import Vocabulary

MAPPED, ASKED, NEAR = 300, 16, 6  # words on the map, words with a line of neighbours, neighbours of each


def show_words(e: Tensor, vocabulary: Vocabulary, counts: Tensor) -> list[Exhibit]:
    """Vectors e (words, d) of a vocabulary, and how often each word occurs."""
    known = list(vocabulary.words)
    asked = Words(known, e[: len(known)])
    telling = [i for i in counts.argsort(descending=True).tolist() if i < len(known) and is_content_word(known[i])]
    shown = telling[:MAPPED]
    at = flat_map(center_rows(e[shown]))
    lines = [[known[i], ", ".join(f"{word} {c:.2f}" for word, c in asked.near(known[i], NEAR))] for i in shown[:ASKED]]
    forms = {"as learned": e[shown], "centred": center_rows(e[shown]), "without 2 components": without_top(e[shown], 2)}
    shape = [[name, float(anisotropy(part))] for name, part in forms.items()]
    return [
        Exhibit(
            "words",
            "Map of the word vectors",
            {"words": [known[i] for i in shown], "at": at.tolist()},
            f"The {len(shown)} most frequent content words, by their first two principal components.",
        ),
        Exhibit("table", "Nearest neighbours", {"columns": ["word", "neighbours and cosines"], "rows": lines}),
        Exhibit(
            "table",
            "Anisotropy",
            {"columns": ["vectors", "mean cosine of two words"], "rows": shape},
            "0: the vectors point equally in all directions; 1: they lie in a narrow cone.",
        ),
    ]


def is_content_word(word: str) -> bool:
    """Whether a word means something by itself."""
    return len(word) > 2 and word not in STOP_WORDS and not word.isdigit()
