"""Texts as numbers of whole words, for a closed list of words; 0 stands for no word."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from descend.errors import Mistake, nearest


def split_words(text: str) -> list[str]:
    """Lower-case words; a comma is a word of its own."""
    return re.findall(r"[a-z]+|,", text.lower())


def encode_words(texts: Sequence[str], words: Sequence[str], longest: int) -> Tensor:
    """1 + number of each word, filled up with 0: (b, longest). An unknown word is a mistake that names the nearest."""
    table = {word: i + 1 for i, word in enumerate(words)}
    found = torch.zeros(len(texts), longest, dtype=torch.long)
    for row, text in enumerate(texts):
        parts = split_words(text)
        if not parts:
            raise Mistake(f"instruction {text!r} has no words")
        if len(parts) > longest:
            raise Mistake(f"instruction {text!r} has {len(parts)} words; at most {longest} can be read")
        for word in parts:
            if word not in table:
                hint = nearest(word, words) or f" The words are: {', '.join(words)}"
                raise Mistake(f"instruction {text!r}: the model has not learned the word {word!r}.{hint}")
        found[row, : len(parts)] = torch.tensor([table[word] for word in parts])
    return found
