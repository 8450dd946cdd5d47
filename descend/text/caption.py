"""Captions as tokens of a fixed number: start, the text, end, and the end again until the row is full."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.text.tokenizer import Tokenizer


def caption_tokens(tokenizer: Tokenizer, captions: Sequence[str], longest: int) -> Tensor:
    """start, the text, end, end ..: (n, longest). A text that is too long is cut, its end stays."""
    start, end = tokenizer.special("bos_token"), tokenizer.end
    if start is None or end is None:
        raise Mistake("this tokenizer has no start or no end token; load the one that was saved with the model")
    rows = [[start, *ids[: longest - 2], end] for ids in tokenizer.encode_many(list(captions))]
    return torch.tensor([row + [end] * (longest - len(row)) for row in rows])
