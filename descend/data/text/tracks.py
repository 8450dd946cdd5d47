"""A text as parallel tracks, read window after window: what truncated backpropagation through time trains on.

    the text is cut into b tracks of equal length; batch k holds window k of every track, so that row r of batch k + 1
    continues where row r of batch k stopped, and a state is carried. After the last window all tracks start again, at
    another offset, and `fresh` says so.

With micro-batches the tracks are dealt out among them. The whole position is one number.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.data.streams.arrays import generator
from descend.data.text.plain import window
from descend.errors import Mistake


def count_tracks(tokens: int, context: int) -> int:
    """The most tracks that a text has room for, each of one window at least and an offset."""
    return (tokens - context) // (context + 1)


class Tracks:
    """x, y (b, t), `rows` (the track of each) and `fresh` (whether it has just begun): an endless stream."""

    def __init__(self, tokens: Tensor, context: int, batch: int, seed: int, accumulate: int = 1):
        self.tokens, self.context, self.seed = tokens, context, seed
        self.share, self.accumulate = batch // accumulate, accumulate
        self.windows = ((len(tokens) - context) // batch - 1) // context  # the offset takes up to one window
        if self.windows < 1:
            raise Mistake(
                f"--batch {batch} is larger than the data: {len(tokens)} tokens are too few for {batch} tracks "
                f"of a window of {context}; give more text, a smaller --batch or a smaller --model.context"
            )
        self.at = 0

    def __next__(self) -> dict[str, Tensor]:
        epoch, here = divmod(self.at, self.windows * self.accumulate)
        k, part = divmod(here, self.accumulate)
        self.at += 1
        offset = int(torch.randint(self.context, (1,), generator=generator(self.seed, epoch)))
        rows = torch.arange(part * self.share, (part + 1) * self.share)
        starts = offset + rows * self.windows * self.context + k * self.context
        fresh = torch.full((len(rows),), k == 0)
        return {**window(self.tokens, starts, self.context), "rows": rows, "fresh": fresh}

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = int(state["at"])
