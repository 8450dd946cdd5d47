"""A number beside every example that depends on how many came before it: a weight that grows while training warms up.

example number k of a stream has value(k), so that it does not matter how the stream is cut into batches
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Stream


class Ramp:
    """The batches of a stream with `name` (b): value of the examples' numbers, 0 for the first of a run."""

    def __init__(self, source: Stream, name: str, value: Callable[[Tensor], Tensor], rank: int = 0, world: int = 1):
        self.source, self.name, self.value, self.rank, self.world = source, name, value, rank, world
        self.place = 0

    def __next__(self) -> Batch:
        batch = next(self.source)
        n = len(batch["ids"])
        start = self.place + self.rank * n
        self.place += n * self.world
        return {**batch, self.name: self.value(torch.arange(start, start + n))}

    def state_dict(self) -> dict[str, Any]:
        return {"source": self.source.state_dict(), "place": self.place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.source.load_state_dict(state["source"])
        self.place = state["place"]
