"""A run in stages: the batches of one stream after those of another, each told which stage it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from descend.contracts import Batch, Stream


class StagedStream:
    """Stream i until step ends[i]; the last one without end. Each batch says its number: `stage` (b)."""

    def __init__(self, streams: Sequence[Stream], ends: Sequence[int], accumulate: int = 1):
        self.streams, self.ends, self.accumulate = list(streams), list(ends), accumulate
        self.drawn = 0

    @property
    def stage(self) -> int:
        """Which stream comes next."""
        step = self.drawn // self.accumulate
        return next((i for i, end in enumerate(self.ends) if step < end), len(self.streams) - 1)

    def __next__(self) -> Batch:
        stage = self.stage
        batch = next(self.streams[stage])
        self.drawn += 1
        return {**batch, "stage": torch.full((len(batch["ids"]),), stage)}

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": self.drawn, "streams": [stream.state_dict() for stream in self.streams]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.drawn = state["drawn"]
        for stream, kept in zip(self.streams, state["streams"], strict=True):
            stream.load_state_dict(kept)
