"""Texts of different lengths as one matrix of numbers: special tokens around them, padding after them, and a mask.

    text -> tokens -> <cls> tokens <sep> -> numbers, <pad> up to the longest -> rows of E

    ids (b, t)      t = the longest of the batch
    mask (b, t)     true where a token is, false where padding is; its row sums are the true lengths
    X = E[ids]      (b, t, d)

Systems: special-tokens-to-matrix
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.embedding import lookup
from descend.text.tokenizer import Tokenizer


def frame_tokens(ids: Sequence[int], first: int | None, last: int | None) -> list[int]:
    """The tokens between a first and a last special token; None leaves one out."""
    return [*([] if first is None else [first]), *ids, *([] if last is None else [last])]


def pad_rows(rows: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    """Numbers (b, t) and mask (b, t)."""
    if not rows:
        raise Mistake("there is no text in the batch; give at least one")
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=pad)
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]


def batch(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Numbers and mask, between the tokenizer's cls (or bos) and sep (or eos) tokens where it has them."""
    pad = tokenizer.special("pad_token")
    if pad is None:
        raise Mistake('this tokenizer has no padding token; add one with with_specials({"pad_token": "<pad>"})')
    first, last = either(tokenizer, "cls_token", "bos_token"), either(tokenizer, "sep_token", "eos_token")
    return pad_rows([frame_tokens(ids, first, last) for ids in tokenizer.encode_many(texts)], pad)


def either(tokenizer: Tokenizer, role: str, other: str) -> int | None:
    """The special token of one role, or else of the other."""
    found = tokenizer.special(role)
    return tokenizer.special(other) if found is None else found


def decode_rows(tokenizer: Tokenizer, ids: Tensor) -> list[str]:
    """The texts of a batch again, without special tokens."""
    return [tokenizer.decode_plain(row) for row in ids.tolist()]


def text_matrix(tokenizer: Tokenizer, text: str, e: Tensor) -> Tensor:
    """X (t, d): the rows of E for a text's tokens."""
    tokenizer.check_fits(len(e))
    return lookup(torch.tensor(tokenizer.encode(text), dtype=torch.long), e)
