"""A language model in the middle of writing: its key-value cache and its fast linear maps behind three calls.

    start(prompts) -> logits,   step(tokens) -> logits,   reorder(rows)

This is what `descend.sampling` decodes with. A model offers `hidden` (everything before the logits, with a cache),
`unembedding` (the matrix that makes logits of it) and `cache`; only the last position of a prompt gets logits.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from descend.nn.cache import Cache
from descend.nn.few_rows import FewRows, decoding_copy, fits


class LanguageModel(Protocol):
    """What a decoder asks of an `nn.Module`."""

    def hidden(self, tokens: Tensor, cache: Cache | None = None) -> Tensor:
        """tokens (b, t) -> (b, t, d): what the logits are read from."""

    def unembedding(self) -> Tensor:
        """(v, d): logits = hidden Uᵀ."""

    def cache(self, batch: int, length: int, pad: Tensor | None = None) -> Cache:
        """An empty key-value cache for `length` positions."""


class CachedDecoder:
    """Each step runs the model on the new token alone. The weights are those at the time it was made."""

    def __init__(self, model: Any, context: int):
        self.context = context
        self.model: LanguageModel = decoding_copy(model)
        head = model.unembedding()
        self.head = FewRows(head, None) if fits(head) else lambda x: F.linear(x, head)

    @torch.inference_mode()
    def start(self, tokens: Tensor, pad: Tensor, length: int) -> Tensor:
        """Read the prompts (b, t), whose first `pad[b]` tokens are padding; logits (b, v) after each."""
        self.memory = self.model.cache(len(tokens), length, pad if pad.any() else None)
        return self.head(self.model.hidden(tokens, self.memory)[:, -1])

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        """Read one more token (b,) of each row; logits (b, v) of the token after it."""
        return self.head(self.model.hidden(tokens[:, None], self.memory)[:, 0])

    @torch.inference_mode()
    def reorder(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self.memory.reorder(rows)
