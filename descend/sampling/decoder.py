"""What decoding asks of a model: logits of the next token, one step after another.

    start(prompts)  ->  z_1 = logits(· | prompt)
    step(y_i)       ->  z_{i+1} = logits(· | prompt, y_1 … y_i)

Every search and every sampler of this folder is written over these calls and knows no model. A model with a key-value
cache brings its own fast decoder (`nn.decoding.cached`); `Recompute` makes one of any causal function and is the
reference that the fast one is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from descend.errors import Mistake

Prompts = Tensor | Sequence[Sequence[int]]
"""Tokens (b, t), or one list of tokens per prompt, of any lengths."""


class Decoder(Protocol):
    """A model in the middle of writing: it remembers the tokens it was given, row by row."""

    context: int
    """The longest sequence it can take, prompt included."""

    def start(self, tokens: Tensor, pad: Tensor, length: int) -> Tensor:
        """Forget everything and read the prompts (b, t), whose first `pad[b]` tokens are padding.

        Returns the logits (b, v) of the token after each prompt; `length` positions will be read in all.
        """

    def step(self, tokens: Tensor) -> Tensor:
        """Read one more token (b,) of each row; logits (b, v) of the token after it."""

    def reorder(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; a row may be taken more than once (beams) or not at all."""


class Recompute:
    """A decoder without memory: every step runs the model over everything again, O(T³) attention in all.

    The rows are padded on the right, where a causal model does not look, so any function tokens (b, t) -> logits
    (b, t, v) will do, without a mask.
    """

    def __init__(self, logits: Callable[[Tensor], Tensor], context: int):
        self.logits, self.context = logits, context

    def start(self, tokens: Tensor, pad: Tensor, length: int) -> Tensor:
        t = tokens.shape[1]
        self.lengths = t - pad
        shift = (torch.arange(t, device=tokens.device) + pad[:, None]) % t  # the padding moves from left to right
        self.tokens = tokens.gather(1, shift)
        return self.last()

    def step(self, tokens: Tensor) -> Tensor:
        room = self.tokens.new_zeros(len(tokens), 1)
        self.tokens = torch.cat([self.tokens, room], dim=1).scatter(1, self.lengths[:, None], tokens[:, None])
        self.lengths = self.lengths + 1
        return self.last()

    def reorder(self, rows: Tensor) -> None:
        self.tokens, self.lengths = self.tokens[rows], self.lengths[rows]

    def last(self) -> Tensor:
        """The logits at the last real position of each row."""
        rows = torch.arange(len(self.tokens), device=self.tokens.device)
        return self.logits(self.tokens)[rows, self.lengths - 1]


def begin(decoder: Decoder, prompts: Prompts, tokens: int) -> Tensor:
    """Start the decoder on these prompts, with room for this many new tokens; logits (b, v) after each prompt."""
    rows, pad = pad_left(prompts)
    length = rows.shape[1] + tokens - 1  # the last new token is written, never read
    if tokens < 1:
        raise Mistake(f"tokens is {tokens}: ask for at least 1 new token")
    if length > decoder.context:
        long = int(pad.argmin())
        raise Mistake(
            f"prompt {long} has {rows.shape[1]} tokens; with {tokens} new ones it passes the model's context of "
            f"{decoder.context}: shorten it or ask for fewer tokens"
        )
    return decoder.start(rows, pad, length)


def pad_left(prompts: Prompts) -> tuple[Tensor, Tensor]:
    """Tokens (b, t) that all end at the same place, and how many of each row are padding (b,)."""
    if isinstance(prompts, Tensor):
        lengths = torch.full(prompts.shape[:1], prompts.shape[-1])
        rows = prompts
    else:
        lengths = torch.tensor([len(p) for p in prompts])
        rows = torch.zeros(len(prompts), max([len(p) for p in prompts], default=0), dtype=torch.long)
        real = torch.arange(rows.shape[1]) >= (rows.shape[1] - lengths)[:, None]
        rows[real] = torch.tensor([token for p in prompts for token in p], dtype=torch.long)
    if rows.ndim != 2 or not len(rows):
        raise Mistake(f"prompts are a batch of token rows, not of shape {tuple(rows.shape)}: give a list of lists")
    if not lengths.all():
        empty = int((lengths == 0).nonzero()[0])
        raise Mistake(f"prompt {empty} is empty: give at least one token, such as the model's start token")
    return rows, rows.shape[1] - lengths.to(rows.device)
