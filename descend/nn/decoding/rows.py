"""Decoding in rows that come and go: each has a text of its own, of any length, and all take one step together.

    join(row, prompt) -> logits (v)         step(rows, tokens) -> logits (n, v)         leave(row)

A step is bound by reading the weights once, whatever the number of rows, so a server writes for many at the cost of
few. The logits of a row are those of a decoder that has this row alone, to the bit: its prompt is read alone, its
cache is its own, and the compiled step makes each of its sums in the same order however many rows there are. Nobody's
text depends on who else is being served.

A long prompt is read in pieces, between which the others go on:

    begin_join(row, prompt);  while (logits := continue_join(row)) is None: step(the others)

A model without a compiled step has a decoder for each row, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor

from descend.native.decoding import MOST_ROWS
from descend.nn.decoding.cached import Angles, CachedDecoder
from descend.nn.decoding.with_source import SourceDecoder


class RowDecoder:
    """`rows` places for texts of at most `length` tokens each, for a decoder as `model.decoder()` gives it."""

    def __init__(self, decoder: Any, rows: int, length: int):
        if isinstance(decoder, SourceDecoder):
            raise ValueError("a model that reads a source answers one source at a time: its rows cannot come and go")
        if rows < 1 or not 1 <= length <= decoder.context:
            raise ValueError(f"{rows} rows of {length} tokens, but at least 1 of 1 to {decoder.context} (the context)")
        self.count, self.length = rows, length
        self.decoder, self.device = decoder, getattr(decoder, "device", "cpu")
        self.kv = decoder.reserve(rows, length) if isinstance(decoder, CachedDecoder) else None
        self.texts: dict[int, Any] = {}  # the decoder of each row that is there
        self.unread: dict[int, list[tuple[Tensor, Angles]]] = {}
        self.read: dict[int, int] = {}
        self.turns: dict[int, Tensor] = {}  # cos and sin of a position

    def join(self, row: int, prompt: Sequence[int]) -> Tensor:
        """Read a prompt into a place that is free; the logits (v) of the token after it."""
        self.begin_join(row, prompt)
        while (logits := self.continue_join(row)) is None:
            pass
        return logits

    def begin_join(self, row: int, prompt: Sequence[int]) -> None:
        """Take a place that is free; nothing is read yet."""
        if not 0 <= row < self.count or row in self.texts:
            raise ValueError(f"row {row} is taken" if row in self.texts else f"row {row} of {self.count}")
        if not 1 <= len(prompt) <= self.length:
            raise ValueError(f"a prompt of {len(prompt)} tokens, but a row has room for 1 to {self.length}")
        text = self.texts[row] = copy(self.decoder)  # the same weights, a memory of its own
        tokens = torch.tensor([list(prompt)], device=self.device)
        self.unread[row] = [(tokens, None)]
        if self.kv is not None:
            self.unread[row] = text.begin(tokens, self.kv[:, :, row : row + 1])
        self.read[row] = len(prompt)

    @torch.inference_mode()
    def continue_join(self, row: int) -> Tensor | None:
        """Read the next piece of the prompt; the logits (v) after the last one, None before."""
        text, pieces = self.texts[row], self.unread[row]
        tokens, angles = pieces.pop(0)
        if self.kv is None:
            logits = text.start(tokens, torch.zeros(1, dtype=torch.long, device=self.device), self.length)
        else:
            logits = text.read(tokens, angles)
        if pieces:
            return None
        del self.unread[row]
        return logits[0]

    @torch.inference_mode()
    def step(self, rows: Sequence[int], tokens: Tensor) -> Tensor:
        """Read one more token (n,) of these rows; logits (n, v) of the token after each."""
        for row in rows:
            if row not in self.texts or row in self.unread:
                raise ValueError(f"row {row} has not read its prompt")
            if self.read[row] == self.length:
                raise ValueError(f"row {row} is full: it has {self.length} tokens")
        for row in rows:
            self.read[row] += 1
        if self.kv is None or self.decoder.native is None:
            return torch.cat([self.texts[row].step(tokens[n : n + 1]) for n, row in enumerate(rows)])
        starts = range(0, len(rows), MOST_ROWS)
        return torch.cat([self.step_together(rows[n : n + MOST_ROWS], tokens[n : n + MOST_ROWS]) for n in starts])

    def step_together(self, rows: Sequence[int], tokens: Tensor) -> Tensor:
        """One call of compiled code."""
        caches = [self.texts[row].cache for row in rows]
        positions = torch.tensor([cache.gone + cache.used for cache in caches])
        x = self.decoder.ends.embed(tokens[:, None], positions[:, None])[:, 0].contiguous()
        used = torch.tensor([cache.take(1) for cache in caches])
        window = self.decoder.window
        first = None if window is None else (used + 1 - window).clamp(min=0)
        return self.decoder.native.step(x, self.kv, used, first, self.angles(positions), torch.tensor(rows))

    def angles(self, positions: Tensor) -> Angles:
        """Of tokens (n,) as if each were alone: they may depend on its length. A position is computed once."""
        if self.decoder.rope is None:
            return None
        for position in positions.tolist():
            if position not in self.turns:
                cos, sin = self.decoder.angles(torch.tensor([[position]]))
                self.turns[position] = torch.stack([cos[0, 0], sin[0, 0]])
        cos, sin = torch.stack([self.turns[position] for position in positions.tolist()], dim=1).unbind(0)
        return cos.contiguous(), sin.contiguous()

    def leave(self, row: int) -> None:
        """The place is free again."""
        del self.texts[row], self.read[row]
        self.unread.pop(row, None)
