"""One batch at every step: a graph is one example, and all of it is seen at once.

The tensors are the very same ones, so that what was derived from them (an order of the edges) can be kept.
"""

from __future__ import annotations

from typing import Any

from descend.contracts import Batch


class Repeated:
    """An endless stream of the same batch; every process gets it."""

    def __init__(self, batch: Batch):
        self.batch = batch

    def __next__(self) -> Batch:
        return dict(self.batch)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """There is nothing to remember."""
