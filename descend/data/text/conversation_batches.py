"""Conversations as batches: rows of tokens filled up with −1, and general text mixed in between them.

    tokens (b, t)   −1 after the end of a row        said (b, t)   what the loss counts        ids (b)

A batch is as wide as its longest row. Rows of like length come together (`descend.data.streams.by_length`); with replay
a share of the examples is windows of general text (`descend.data.streams.mixture`), all of which count.

Systems: instruction-dataset
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.arrays import InOrder
from descend.data.streams.batches import join_batches
from descend.data.streams.by_length import ByLength
from descend.data.text.conversations import Record, encode_record
from descend.data.text.plain import Windows
from descend.text.tokenizer import Tokenizer

NOTHING = -1
"""After the end of a row."""


def encode_records(records: Sequence[Record], tokenizer: Tokenizer, longest: int) -> dict[str, Tensor]:
    """tokens (n, t), said (n, t) and ids (n), which are the records' numbers."""
    rows = [encode_record(record, tokenizer, longest) for record in records]
    lengths = torch.tensor([len(row.tokens) for row in rows])
    inside = torch.arange(int(lengths.max())) < lengths[:, None]
    tokens = torch.full(inside.shape, NOTHING, dtype=torch.int32)
    tokens[inside] = torch.tensor([token for row in rows for token in row.tokens], dtype=torch.int32)
    said = torch.zeros(inside.shape, dtype=torch.bool)
    said[inside] = torch.tensor([one for row in rows for one in row.said])
    return {"tokens": tokens, "said": said, "ids": torch.arange(len(rows))}


def count_tokens(arrays: Batch) -> Tensor:
    """Tokens of each row (n)."""
    return (arrays["tokens"] != NOTHING).sum(dim=1)


def trim(batch: Batch) -> Batch:
    """As wide as the longest row."""
    widest = int(count_tokens(batch).max())
    return {**batch, "tokens": batch["tokens"][:, :widest].long(), "said": batch["said"][:, :widest]}


def fill_up(batch: Batch, width: int) -> Batch:
    """`width` columns; what is added is nothing."""
    more = width - batch["tokens"].shape[1]
    pad = torch.nn.functional.pad
    return {**batch, "tokens": pad(batch["tokens"], (0, more), value=NOTHING), "said": pad(batch["said"], (0, more))}


def join_rows(pieces: list[Batch]) -> Batch:
    """Pieces of different widths as one batch."""
    width = max(piece["tokens"].shape[1] for piece in pieces)
    return join_batches([fill_up(piece, width) for piece in pieces])


class Dialogues(ByLength):
    """An endless stream of conversations, those of like length together."""

    def __init__(self, arrays: Batch, group: int, batch: int, seed: int, rank: int = 0, world: int = 1):
        super().__init__(arrays, count_tokens(arrays), group, batch, seed, rank, world)

    def __next__(self) -> Batch:
        return trim(super().__next__())

    def take(self, start: int, stop: int) -> Batch:
        return trim(super().take(start, stop))


class DialoguesInOrder(InOrder):
    """The same conversations again and again, the short ones first."""

    def __init__(self, arrays: Batch, batch: int):
        order = count_tokens(arrays).argsort(stable=True)
        super().__init__({name: tensor[order] for name, tensor in arrays.items()}, batch)

    def __iter__(self) -> Iterator[Batch]:
        return (trim(batch) for batch in super().__iter__())


class Replayed:
    """Windows of general text as rows that count from their second token on: a source of a mixture."""

    def __init__(self, tokens: Tensor, length: int, seed: int):
        self.windows = Windows(tokens, length - 1, 1, seed)

    def take(self, start: int, stop: int) -> Batch:
        found = self.windows.take(start, stop)
        tokens = torch.cat([found["x"], found["y"][:, -1:]], dim=1)
        said = torch.ones_like(tokens, dtype=torch.bool)
        said[:, 0] = False  # nothing stands before it
        return {"tokens": tokens, "said": said, "ids": found["ids"]}


class OneAfterAnother:
    """Several sets of batches, walked one after the other, as often as asked."""

    def __init__(self, *sets: Iterable[Batch]):
        self.sets = sets

    def __iter__(self) -> Iterator[Batch]:
        for batches in self.sets:
            yield from batches
