"""The levels of tokenization on one text: how long the sequence gets, and how much of it is unknown.

    words        short sequences; a misspelt or new word is `<unk>`
    characters   nothing unknown; long sequences, and the structure of words is lost
    between      whole words where they are common, parts and single characters where not: nothing unknown

cook, cooks, cooked, cooking and cooker are five tokens for the first, and share the token cook in the third (DLN).

Systems: word-char-ngram-tokenizers
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from descend.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Level:
    """A kind of tokenizer on one text."""

    kind: str
    vocab: int
    length: int
    """Tokens of the text."""
    unknown: float
    """Share of them that are `<unk>`."""


def compare(
    train: str, text: str, vocab: int, kinds: Sequence[str] = ("words", "bpe", "characters")
) -> tuple[Level, ...]:
    """Each kind learned from the training text and tried on the other."""
    return tuple(look(kind, Tokenizer.learn(train, kind, vocab), text) for kind in kinds)


def look(kind: str, tokenizer: Tokenizer, text: str) -> Level:
    """Length and unknown rate of one tokenizer."""
    ids, unknown = tokenizer.encode(text), tokenizer.special("unk_token")
    return Level(kind, tokenizer.vocab, len(ids), ids.count(-1 if unknown is None else unknown) / max(len(ids), 1))
