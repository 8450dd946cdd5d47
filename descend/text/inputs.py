"""What an encoder reads: [CLS] A [SEP], or [CLS] A [SEP] B [SEP], with segments, padded to a batch.

    tokens      [CLS]  a_1 .. a_m  [SEP]  b_1 .. b_n  [SEP]  [PAD] ..
    segments      0     0  ..  0     0     1  ..  1     1      0   ..
    positions     0     1  ..                                          counted by the model
    mask          1     1  ..                         1        0   ..

A pair that is too long loses tokens from the end of its longer text. RoBERTa's <s>, </s>, <pad> and <mask> do the same.

Systems: bert-input, padding-mask
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.text.tokenizer import Tokenizer

NAMES = {"pad": ("[PAD]", "<pad>"), "cls": ("[CLS]", "<s>"), "sep": ("[SEP]", "</s>"), "mask": ("[MASK]", "<mask>")}
"""By role: BERT's name, RoBERTa's name. They are looked for where a folder does not say which token has the role."""


@dataclass(frozen=True)
class Encoded:
    """A text or a pair: `tokens`, and the segment of each."""

    tokens: list[int]
    segments: list[int]


@dataclass(frozen=True)
class Inputs:
    """A tokenizer, its special tokens, and the most tokens that a text may have."""

    tokenizer: Tokenizer
    pad: int
    cls: int
    sep: int
    mask: int
    longest: int

    @classmethod
    def of(cls, tokenizer: Tokenizer, longest: int) -> Self:
        """With the special tokens that the tokenizer already has."""
        tokenizer.inner.no_padding()
        tokenizer.inner.no_truncation()
        found = {}
        for role, names in NAMES.items():
            numbers = [tokenizer.special(f"{role}_token"), *map(tokenizer.inner.token_to_id, names)]
            known = [n for n in numbers if n is not None]
            if not known:
                raise Mistake(f"the tokenizer has no {names[0]}; an encoder needs one (Inputs.extend adds it)")
            found[role] = known[0]
        return cls(tokenizer, **found, longest=longest)

    @classmethod
    def extend(cls, tokenizer: Tokenizer, longest: int) -> Self:
        """With the four special tokens added behind the tokenizer's own."""
        return cls.of(tokenizer.with_specials({f"{role}_token": names[0] for role, names in NAMES.items()}), longest)

    @property
    def special(self) -> list[int]:
        """The tokens that are not text: never masked, never predicted."""
        end = self.tokenizer.end
        return [self.pad, self.cls, self.sep, self.mask, *([] if end is None else [end])]

    def encode(self, a: str, b: str | None = None) -> Encoded:
        """The tokens of one text, or of a pair."""
        return self.join(self.tokenizer.encode(a), None if b is None else self.tokenizer.encode(b))

    def join(self, a: Sequence[int], b: Sequence[int] | None = None) -> Encoded:
        """As `encode`, from tokens."""
        if b is None:
            tokens = [self.cls, *a[: self.longest - 2], self.sep]
            return Encoded(tokens, [0] * len(tokens))
        m, n = shorten_pair(len(a), len(b), self.longest - 3)
        tokens = [self.cls, *a[:m], self.sep, *b[:n], self.sep]
        return Encoded(tokens, [0] * (m + 2) + [1] * (n + 1))

    def batch(self, texts: Sequence[Encoded]) -> dict[str, Tensor]:
        """x, mask and segments (b, t), padded to the longest text of these."""
        return {
            "x": pad_rows([text.tokens for text in texts], self.pad),
            "mask": lengths_mask([len(text.tokens) for text in texts]),
            "segments": pad_rows([text.segments for text in texts], 0),
        }


def shorten_pair(m: int, n: int, room: int) -> tuple[int, int]:
    """The lengths of a pair cut to `room` together, the longer one first."""
    half = room // 2
    if m + n <= room:
        return m, n
    if min(m, n) <= half:
        return (m, room - m) if m <= n else (room - n, n)
    return room - half, half


def pad_rows(rows: Sequence[Sequence[int]], pad: int) -> Tensor:
    """Lists of numbers as a matrix, filled up with `pad`: (b, t)"""
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=pad)


def lengths_mask(lengths: Sequence[int]) -> Tensor:
    """(b, t), true for the first `lengths[i]` of each row."""
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
