"""A stream of images with hidden patches: for each image which are hidden, and what each of them was.

The hidden patches of an image are a function of the seed and of its place in the stream: other ones each time it comes,
the same ones however the stream is cut into batches and wherever it was resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from descend.data.text.masking import uniform
from descend.errors import Mistake
from descend.nn.patches import grid_of, patchify
from descend.ops.images.block_mask import block_mask
from descend.ranges import Between, Side

Batch = dict[str, Tensor]
BLOCKS = 16  # at most, in an image


@dataclass(frozen=True)
class Hiding:
    """How much of an image is hidden."""

    share: Between = 0.4
    """Share of the patches that are hidden."""
    smallest: Side = 2
    """Patches of the smallest block; the paper has 16 of 196."""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1 or self.smallest < 1:
            raise Mistake(
                f"--hiding {self.share}, {self.smallest}: the share is in 0..1, the smallest block at least 1"
            )


@dataclass(frozen=True)
class Hide:
    """A hiding for patches of a size, and what turns patches into visual tokens."""

    hiding: Hiding
    patch: int
    tokenize: Callable[[Tensor], Tensor]

    def __call__(self, batch: Batch, seed: int, keys: Tensor) -> Batch:
        """x, hide (b, N), y (b, N): the visual tokens of all patches."""
        x = batch["x"]
        u = uniform(seed, keys, BLOCKS * 4).unflatten(1, (BLOCKS, 4))
        grid = grid_of(x.shape[2], x.shape[3], self.patch)
        hidden = block_mask(u, grid, self.hiding.share, self.hiding.smallest)
        return {**batch, "hide": hidden, "y": self.tokenize(patchify(x, self.patch))}


class HiddenPatches:
    """A stream of images x, with `hide` and `y` for each."""

    def __init__(self, source: Any, hide: Hide, seed: int, rank: int = 0, world: int = 1):
        self.source, self.hide, self.seed, self.rank, self.world = source, hide, seed, rank, world
        self.place = 0

    def __next__(self) -> Batch:
        batch = next(self.source)
        n = len(batch["x"])
        keys = self.place + self.rank * n + torch.arange(n)
        self.place += n * self.world
        return self.hide(batch, self.seed, keys)

    def state_dict(self) -> dict[str, Any]:
        return {"source": self.source.state_dict(), "place": self.place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.source.load_state_dict(state["source"])
        self.place = state["place"]


def hidden_once(batches: Iterable[Batch], hide: Hide, seed: int = 0) -> list[Batch]:
    """Batches with patches hidden once and for all: for validation."""
    return [hide(batch, seed, batch["ids"]) for batch in batches]
