"""Rare classes: weights in the loss, batches with equal shares, and a last phase on the true frequencies.

    weights     w_c = n / (K n_c)            the mean of w over the data is 1; as if rare examples were repeated
    batches     b/K of each class; an epoch is the largest class once; a smaller one begins again at its beginning
    two phases  balanced batches first, then some on the data as it is: the outputs are probabilities again

Balanced batches make a classifier believe that all classes are equally frequent; its decisions for rare classes gain,
its probabilities are off by the ratio of the frequencies. A few epochs on the true frequencies bring them back.
No example of the frequent classes is thrown away.

Systems: class-imbalance
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.contracts import Stream
from descend.data.streams.arrays import Cursor, generator, with_ids
from descend.data.streams.batches import join_batches, take_examples
from descend.errors import Mistake


def class_counts(y: Tensor, classes: int) -> Tensor:
    """n_c of classes y (n); a class without any example is a mistake."""
    counts = torch.bincount(y, minlength=classes)
    if (counts == 0).any():
        raise Mistake(f"class {int((counts == 0).nonzero()[0])} has no training example: it cannot be balanced")
    return counts


def class_weights(y: Tensor, classes: int) -> Tensor:
    """w_c = n / (K n_c) (K): every class weighs as much as any other in the whole."""
    counts = class_counts(y, classes)
    return len(y) / (classes * counts.float())


class Balanced:
    """An endless stream of minibatches with the same number from each class of `y`."""

    def __init__(self, arrays: dict[str, Tensor], batch: int, seed: int = 0, rank: int = 0, world: int = 1):
        self.arrays, _ = with_ids(arrays)
        y = self.arrays["y"]
        self.classes, self.seed = int(y.max()) + 1, seed
        counts = class_counts(y, self.classes)
        if batch % self.classes:
            raise Mistake(
                f"--batch {batch} does not divide evenly among {self.classes} classes; use a multiple of {self.classes}"
            )
        self.rows = [(y == c).nonzero().flatten() for c in range(self.classes)]
        self.cursor = Cursor(int(counts.max()), batch // self.classes, rank, world)
        self._epoch: tuple[int, list[Tensor]] = (-1, [])

    def buffers(self, e: int) -> list[Tensor]:
        """The rows of each class in the order of epoch e; kept until another is asked for."""
        if self._epoch[0] != e:
            random = generator(self.seed, e)
            self._epoch = e, [rows[torch.randperm(len(rows), generator=random)] for rows in self.rows]
        return self._epoch[1]

    def __next__(self) -> dict[str, Tensor]:
        return join_batches([self._piece(*piece) for piece in self.cursor.advance()])

    def _piece(self, e: int, start: int, stop: int) -> dict[str, Tensor]:
        turn = torch.arange(start, stop)
        rows = torch.cat([buffer[turn % len(buffer)] for buffer in self.buffers(e)])
        return take_examples(self.arrays, rows)

    def state_dict(self) -> dict[str, Any]:
        return self.cursor.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.cursor.load_state_dict(state)


class TwoPhases:
    """The first stream for this many batches, then the second forever."""

    def __init__(self, first: Stream, second: Stream, batches: int):
        self.first, self.second, self.batches, self.drawn = first, second, batches, 0

    def __next__(self) -> dict[str, Tensor]:
        stream = self.first if self.drawn < self.batches else self.second
        self.drawn += 1
        return next(stream)

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": self.drawn, "first": self.first.state_dict(), "second": self.second.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.drawn = state["drawn"]
        self.first.load_state_dict(state["first"])
        self.second.load_state_dict(state["second"])
