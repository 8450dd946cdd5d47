"""Text for language models: a file or folder of the user's, or the Python documentation that ships with Python.

A text file is held in memory. A folder, a .jsonl or .gz file, and what is larger than LARGE, become a corpus on disk
(`data.corpus`) of which only the windows of a batch are ever in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.data.reading import check_file, read_text, show
from descend.data.streams.arrays import Cursor, cut_at_epochs, generator
from descend.data.text.corpus import Corpus, open_corpus
from descend.data.text.documents import many, pieces, sources
from descend.errors import Mistake
from descend.ranges import Fraction, Length
from descend.text.tokenizer import Tokenizer

Batch = dict[str, Tensor]
LARGE = 2**26  # bytes above which a text is not held in memory


@dataclass(frozen=True)
class Text:
    """Where the text comes from and how it is cut into tokens."""

    path: str = ""
    """A UTF-8 text, a .jsonl file with "text", either as .gz, or a folder of them; empty: Python's documentation."""
    tokenizer: str = "bpe"
    """bpe (byte-level), characters, plain-bpe, unigram, wordpiece or words."""
    vocab: Length = 512
    """Maximum vocabulary size; characters takes as many as the text has."""
    valid: Fraction = 0.1
    """Share of the text used for validation: at its end, or every n-th document of many."""
    cache: str = ""
    """Folder for tokenized corpora; empty: the user's cache folder."""

    def open(self, context: int) -> Corpus:
        """The tokenizer and the tokens, in memory or on disk."""
        if not 0 < self.valid < 1:
            raise Mistake(f"--data.valid {self.valid}: the validation share must be between 0 and 1")
        path = Path(self.path)
        if self.path and (many(path) or check_file(path).st_size > LARGE):
            return open_corpus(self.path, self.tokenizer, self.vocab, self.valid, self.cache).check(context, self.path)
        text = self.read()
        tokenizer = self.learn_tokenizer(text)
        train, valid = self.split(text, tokenizer, context)
        held_out = len(text[round(len(text) * (1 - self.valid)) :].encode())
        return Corpus(tokenizer, train, valid, len(text), held_out)

    def read(self) -> str:
        """The text, or a mistake that names the file."""
        if not self.path:
            return python_documentation()
        path = Path(self.path)
        if many(path):
            parts = (piece.text + "\n\n" * piece.last for file in sources(path) for piece in pieces(file))
            return "".join(parts)
        text = read_text(path)
        if not text.strip():
            raise Mistake(f"{show(path)} is empty; a language model needs text")
        return text

    def learn_tokenizer(self, text: str) -> Tokenizer:
        """The tokenizer, learned from the training share only."""
        text = text[: round(len(text) * (1 - self.valid))]
        return Tokenizer.learn(text, self.tokenizer, self.vocab)

    def split(self, text: str, tokenizer: Tokenizer, context: int) -> tuple[Tensor, Tensor]:
        """Training and validation tokens: the text's beginning and its end."""
        cut = round(len(text) * (1 - self.valid))
        parts = {"training": text[:cut], "validation": text[cut:]}
        tokens = {name: torch.tensor(tokenizer.encode(part), dtype=torch.int32) for name, part in parts.items()}
        for name, ids in tokens.items():
            if len(ids) <= context:
                raise Mistake(
                    f"{self.path or 'the text'}: {len(ids)} tokens for {name}, but a context of {context} needs more; "
                    f"give more text or a smaller --model.context"
                )
        return tokens["training"], tokens["validation"]


def python_documentation() -> str:
    """The language reference that Python carries for its own help(): 460,000 characters of English prose and code."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


def count_windows(tokens: int, context: int) -> int:
    """The windows of an epoch: one less than fit, which leaves room for the offset."""
    return max((tokens - 1) // context - 1, 1)


class Windows:
    """Windows of `context` tokens and the tokens that follow each, shuffled; every epoch covers the text once.

    x = w[0..context), y = w[1..context]. Each epoch cuts the text at another offset and shuffles the windows anew.
    """

    def __init__(self, tokens: Tensor, context: int, batch: int, seed: int, rank: int = 0, world: int = 1):
        self.tokens, self.context, self.seed = tokens, context, seed
        count = count_windows(len(tokens), context)
        if batch > count:
            raise Mistake(
                f"--batch {batch} is larger than the data: {count} windows of {context} tokens; "
                f"give more text, a smaller --batch or a smaller --model.context"
            )
        self.cursor = Cursor(count, batch, rank, world)
        self._starts: tuple[int, Tensor] = (-1, torch.empty(0))

    def starts(self, epoch: int) -> Tensor:
        """Where the windows of an epoch begin, in the order of the epoch."""
        if self._starts[0] != epoch:
            random, n = generator(self.seed, epoch), self.cursor.n
            room = min(len(self.tokens) - 1 - n * self.context, self.context - 1)
            offset = torch.randint(room + 1, (1,), generator=random)
            self._starts = epoch, torch.randperm(n, generator=random) * self.context + offset
        return self._starts[1]

    def __next__(self) -> Batch:
        return self._read(self.cursor.advance())

    def take(self, start: int, stop: int) -> Batch:
        """The windows number start, .., stop − 1 of all epochs laid end to end; the stream stays where it stands."""
        return self._read(cut_at_epochs(start, stop, self.cursor.n))

    def _read(self, pieces: Iterator[tuple[int, int, int]]) -> Batch:
        starts = torch.cat([self.starts(epoch)[first:stop] for epoch, first, stop in pieces])
        return window(self.tokens, starts, self.context)

    def state_dict(self) -> dict[str, Any]:
        return self.cursor.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.cursor.load_state_dict(state)


class Passages:
    """A text from beginning to end, cut into windows: what validation walks through, the same each time."""

    def __init__(self, tokens: Tensor, context: int, batch: int, limit: int = 0):
        starts = torch.arange(0, len(tokens) - context, context)
        self.tokens, self.context, self.batch = tokens, context, batch
        spread = torch.linspace(0, len(starts) - 1, min(limit or len(starts), len(starts))).long()
        self.starts = starts[spread]

    def __iter__(self) -> Iterator[Batch]:
        for starts in self.starts.split(self.batch):
            yield window(self.tokens, starts, self.context)


def window(tokens: Tensor, starts: Tensor, context: int) -> Batch:
    """x (b, t) and y (b, t), one token ahead; `ids` are the offsets in the text."""
    w = tokens[starts[:, None] + torch.arange(context + 1)].long()
    return {"x": w[:, :-1], "y": w[:, 1:], "ids": starts}
