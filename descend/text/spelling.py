"""Tokens that come one after the other, as text: a piece is told as soon as its last character is whole.

A character may need several tokens (byte-level tokenizers); until they are there, decoding ends in U+FFFD. Only the
last tokens are decoded again, so that a long text costs no more for each token than a short one.
"""

from __future__ import annotations

from descend.text.tokenizer import Tokenizer

UNFINISHED = "\ufffd"
WINDOW = 64  # tokens after which the earlier ones are let go
KEPT = 8  # of which so many stay: what a tokenizer writes may depend on the neighbours (a space, a full stop)


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
        if len(self.tokens) >= WINDOW:
            self.let_go()
        return piece

    def let_go(self) -> None:
        """Forget the earlier tokens, up to a place between two characters."""
        for cut in range(len(self.tokens) - KEPT, 0, -1):
            if not self.tokenizer.decode(self.tokens[:cut]).endswith(UNFINISHED):
                self.tokens = self.tokens[cut:]
                self.shown = self.tokenizer.decode(self.tokens)
                return
