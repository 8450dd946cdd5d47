"""Standardization: differences that do not matter are taken away before text becomes tokens. Each step is a function.

    lower_case          The -> the
    without_accents     café -> cafe            (canonical decomposition, marks dropped)
    without_punctuation don't, stop! -> dont stop
    without_stop_words  the cat sat on it -> cat sat
    stemmed             connected, connecting, connection -> connect
    lemmatized          ate, eaten, eats -> eat

The first four are idempotent. DLD 6.3's example of stemming is garbled; it means that the forms of "eat" become one. A
stemmer cuts endings, so it cannot do that for "ate": irregular forms need a table.

Systems: text-vectorization-pipeline
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from descend.text.stemming import stem

STOPPED = """
a an the and or but if of at by for with to from in on off as is am are was were be been being i me my you your he him
his she her it its we us our they them their this that these those do does did have has had so than too
"""
STOP_WORDS = frozenset(STOPPED.split())

IRREGULAR = {
    "be": "am are is was were been",
    "have": "has had",
    "do": "does did done",
    "go": "goes went gone",
    "eat": "ate eaten",
    "see": "saw seen",
    "take": "took taken",
    "give": "gave given",
    "write": "wrote written",
    "speak": "spoke spoken",
    "know": "knew known",
    "run": "ran",
    "come": "came",
    "make": "made",
    "say": "said",
    "think": "thought",
    "buy": "bought",
    "child": "children",
    "man": "men",
    "woman": "women",
    "mouse": "mice",
    "foot": "feet",
    "good": "better best",
    "bad": "worse worst",
}
LEMMAS = {form: lemma for lemma, forms in IRREGULAR.items() for form in forms.split()}


# Of text


def lower_case(text: str) -> str:
    """All letters small."""
    return text.lower()


def without_accents(text: str) -> str:
    """Letters without their marks."""
    apart = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(c for c in apart if unicodedata.category(c) != "Mn"))


def without_punctuation(text: str) -> str:
    """Without the characters that Unicode calls punctuation."""
    return "".join(c for c in text if not unicodedata.category(c).startswith("P"))


# Of tokens


def without_stop_words(tokens: Sequence[str]) -> list[str]:
    """Without the most common little words."""
    return [token for token in tokens if token not in STOP_WORDS]


def stem_tokens(tokens: Sequence[str]) -> list[str]:
    """Every token's stem (Porter)."""
    return [stem(token) for token in tokens]


def lemmatize_tokens(tokens: Sequence[str]) -> list[str]:
    """Irregular forms by the table, all others by their stem."""
    return [LEMMAS.get(token) or stem(token) for token in tokens]
