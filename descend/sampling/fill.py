"""Fill in the blanks of a text with a masked language model: at each [MASK], the most likely tokens.

Every blank is filled from the same text, each without the others' answers. (A model that sees what comes later cannot
write on token by token with a cache.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Filled(NamedTuple):
    """The blanks' positions (n), and the k most likely tokens of each with their probabilities (n, k)."""

    positions: Tensor
    tokens: Tensor
    probabilities: Tensor


def blanks(tokens: Tensor, mask: int) -> Tensor:
    """Where the blanks of one text (t) are, counted from 0."""
    return (tokens == mask).nonzero()[:, 0]


def place_blanks(pieces: Sequence[Sequence[int]], mask: int, room: int) -> list[int]:
    """Pieces of a text with a blank between each two; of a long text the `room` tokens around its first blank."""
    tokens = list(pieces[0])
    for piece in pieces[1:]:
        tokens += [mask, *piece]
    start = max(0, min(len(pieces[0]) - room // 2, len(tokens) - room))
    return tokens[start : start + room]


@torch.no_grad()
def fill(model: Callable[[Tensor], Tensor], tokens: Tensor, mask: int, k: int = 5) -> Filled:
    """The answers for one text (t); `model` makes logits (1, t, v) of tokens (1, t)."""
    at = blanks(tokens, mask)
    p = model(tokens[None])[0, at].softmax(dim=-1)
    p, found = p.topk(min(k, p.shape[-1]), dim=-1)
    return Filled(at, found, p)
