"""Rules of quality: which documents a corpus is better without, and which lines.

    broken          characters that are no text: U+FFFD, or control characters
    repeated        more than 3 of 10 of its lines are copies of other lines                   (Gopher)
    symbols         fewer than 8 of 10 words have a letter                                     (Gopher)
    word-length     the mean length of its words is not 3 to 10 characters                     (Gopher)
    few-sentences   fewer than 3 sentences                                                     (C4)
    braces          a "{", which prose has not and code has                                    (C4)
    placeholder     "lorem ipsum"                                                              (C4)

    lines           kept: lines of 5 words or more that end like a sentence                    (C4)

MF 36.9 names C4 and prints no rule, VOM 13.4 asks for "quality filtering" without one. These are rules of the papers:
C4 is Raffel et al. (2020), Gopher Rae et al. (2021).

Systems: corpus-preparation
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s|$)")
CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffd]")
LETTER = re.compile(r"[^\W\d_]")
LINE_ENDS = (".", "!", "?", '"', "”")
LINE_WORDS, LEAST_SENTENCES = 5, 3
MOST_REPEATED, LEAST_WORDY = 0.3, 0.8
SHORTEST_MEAN, LONGEST_MEAN = 3, 10


def is_broken(text: str) -> bool:
    return CONTROL.search(text) is not None


def is_repeated(text: str) -> bool:
    lines = Counter(line.strip() for line in text.splitlines() if line.strip())
    return sum(count - 1 for count in lines.values()) > MOST_REPEATED * lines.total()


def is_symbols(text: str) -> bool:
    words = text.split()
    return sum(LETTER.search(word) is not None for word in words) < LEAST_WORDY * len(words) or not words


def has_odd_words(text: str) -> bool:
    words = text.split()
    return not words or not SHORTEST_MEAN <= sum(map(len, words)) / len(words) <= LONGEST_MEAN


def has_few_sentences(text: str) -> bool:
    return len(SENTENCE_END.findall(text)) < LEAST_SENTENCES


def has_braces(text: str) -> bool:
    return "{" in text


def is_placeholder(text: str) -> bool:
    return "lorem ipsum" in text.lower()


RULES: dict[str, Callable[[str], bool]] = {
    "broken": is_broken,
    "repeated": is_repeated,
    "symbols": is_symbols,
    "word-length": has_odd_words,
    "few-sentences": has_few_sentences,
    "braces": has_braces,
    "placeholder": is_placeholder,
}
"""Name -> whether a document is left out by it."""


def keep_lines(text: str) -> str:
    """The lines that are sentences."""
    kept = [
        line
        for line in text.splitlines()
        if len(line.split()) >= LINE_WORDS and line.rstrip().endswith(LINE_ENDS) and not line.rstrip().endswith("...")
    ]
    return "\n".join(kept)
