"""Tokens that come one after the other, as text: a piece is told as soon as its last character is whole.

A character may need several tokens (byte-level tokenizers); until they are there, decoding ends in U+FFFD.
"""

from __future__ import annotations

from descend.text.tokenizer import Tokenizer

UNFINISHED = "\ufffd"


class Spelling:
    """The text of some tokens while they come."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer, self.shown = tokenizer, ""
        self.tokens: list[int] = []

    def add(self, token: int) -> str:
        """What one more token adds to the text; nothing while a character is unfinished."""
        self.tokens.append(token)
        text = self.tokenizer.decode(self.tokens)
        if text.endswith(UNFINISHED):
            return ""
        piece, self.shown = text.removeprefix(self.shown), text
        return piece
