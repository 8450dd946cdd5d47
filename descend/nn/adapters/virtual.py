"""Decoding behind virtual tokens: every prompt begins with m of them, after its padding and before its text.

[pad .. pad, virtual_1 .. virtual_m, y_1, y_2, ..]
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import torch
from torch import Tensor


def put_in_front(tokens: Tensor, pad: Tensor, ids: Tensor) -> Tensor:
    """Tokens (b, t), of which the first `pad[b]` are padding -> (b, m + t) with `ids` (m) where the text begins."""
    m, t = len(ids), tokens.shape[1]
    at = torch.arange(m + t, device=tokens.device) - pad[:, None]  # 0 at the first virtual token of each row
    column = torch.where(at < 0, at, at - m) + pad[:, None]
    text = tokens.gather(1, column.clamp(0, t - 1))
    return torch.where((at >= 0) & (at < m), ids.to(tokens)[at.clamp(0, m - 1)], text)


class VirtualDecoder:
    """A decoder whose prompts begin with virtual tokens; its context is shorter by them."""

    def __init__(self, inner: Any, ids: Tensor):
        self.inner, self.ids = inner, ids
        self.context = inner.context - len(ids)

    def __copy__(self) -> Self:
        """The same weights, a memory of its own."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self), inner=copy(self.inner))
        return twin

    @torch.inference_mode()
    def start(self, tokens: Tensor, pad: Tensor, length: int) -> Tensor:
        """Read the prompts (b, t), whose first `pad[b]` tokens are padding; logits (b, v) after each."""
        logits: Tensor = self.inner.start(put_in_front(tokens, pad, self.ids), pad, length + len(self.ids))
        return logits

    def step(self, tokens: Tensor) -> Tensor:
        """Read one more token (b,) of each row; logits (b, v) of the token after it."""
        logits: Tensor = self.inner.step(tokens)
        return logits

    def reorder(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self.inner.reorder(rows)
