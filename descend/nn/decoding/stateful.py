"""Decoding with a state: a recurrent model in the middle of writing. A step costs the same however long the text is.

    begin(tokens, pad) -> logits, state        step(tokens, state) -> logits, state        take(state, rows) -> state

What a state is, only the model knows: h and c of an LSTM, what a decoder may look at, the memory of a Mamba block.
`pad_right` moves the padding of prompts behind them, where a recurrent net does not arrive. Dropout is off while it
writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from descend.nn.decoding.with_source import ANY_LENGTH, evaluate_only

State = TypeVar("State")


class StatefulDecoder(Generic[State]):
    """What `descend.sampling` writes with."""

    context = ANY_LENGTH

    def __init__(
        self,
        model: nn.Module,
        begin: Callable[[Tensor, Tensor], tuple[Tensor, State]],
        step: Callable[[Tensor, State], tuple[Tensor, State]],
        take: Callable[[State, Tensor], State],
    ):
        self.model, self.begin, self.advance, self.take = model, begin, step, take

    @torch.inference_mode()
    def start(self, tokens: Tensor, pad: Tensor, length: int) -> Tensor:
        """Read the prompts (b, t), whose first `pad[b]` tokens are padding; logits (b, v) after each."""
        with evaluate_only(self.model):
            logits, self.state = self.begin(tokens, pad)
        return logits

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        """Read one more token (b,) of each row; logits (b, v) of the token after it."""
        with evaluate_only(self.model):
            logits, self.state = self.advance(tokens, self.state)
        return logits

    @torch.inference_mode()
    def reorder(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self.state = self.take(self.state, rows)


def pad_right(tokens: Tensor, pad: Tensor) -> tuple[Tensor, Tensor]:
    """Prompts (b, t) padded on the left by `pad` (b) -> padded on the right, and their lengths."""
    t = tokens.shape[1]
    shift = (torch.arange(t, device=tokens.device) + pad[:, None]) % t
    return tokens.gather(1, shift), t - pad
