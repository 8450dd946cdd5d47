"""A batch handed out in slices: to micro-batches one after another, and to processes side by side.

    batch (b) -> k · w slices of b / (k w);      slice j w + r is micro-batch j of process r

For streams that cannot be asked for a part of a batch: environments step once, whatever the batch is cut into. Every
process plays the whole batch (from equal weights, so to the bit the same) and learns from its own slices.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from descend.contracts import Stream
from descend.data.streams.batches import slice_examples
from descend.errors import Mistake


class Sliced:
    """A stream of slices of another stream's batches."""

    def __init__(self, stream: Stream, batch: int, accumulate: int = 1, rank: int = 0, world: int = 1):
        if batch % (accumulate * world):
            raise Mistake(
                f"--batch {batch} cannot be cut into {accumulate} micro-batches for {world} processes; "
                f"use a multiple of {accumulate * world}"
            )
        self.stream, self.accumulate, self.rank, self.world = stream, accumulate, rank, world
        self.size = batch // (accumulate * world)
        self.whole: dict[str, Tensor] = {}
        self.turn = 0  # micro-batches of this batch already given

    def __next__(self) -> dict[str, Tensor]:
        if self.turn == 0:
            self.whole = next(self.stream)
        start = (self.turn * self.world + self.rank) * self.size
        self.turn = (self.turn + 1) % self.accumulate
        return slice_examples(self.whole, start, start + self.size)

    def state_dict(self) -> dict[str, Any]:
        """The stream's state, and between two slices also the batch that is being cut."""
        return {"turn": self.turn, "whole": dict(self.whole) if self.turn else {}, "stream": self.stream.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.turn, self.whole = state["turn"], dict(state["whole"])
        self.stream.load_state_dict(state["stream"])
