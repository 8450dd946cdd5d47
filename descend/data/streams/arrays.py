"""Minibatches over named tensors, in an order that is a function of seed and position.

    epoch e:   a permutation π_e of 0..n-1 from a generator seeded by (seed, e)
    stream:    π_0, π_1, π_2, ... laid end to end and cut into batches of b

Every example comes exactly once in an epoch, every batch has b examples (one may reach over the end of an epoch), and
k batches of b/k are the batch of b: splitting a step into micro-batches changes no data. Of w processes, process r
takes the r-th part of every batch. So the whole state is {epoch, position}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from descend.data.streams.batches import is_ragged, join_batches, slice_examples, take_examples
from descend.errors import Mistake
from descend.seeds import generator as generator

POOL = 16384  # draws made at once by `Drawn`; not the batch size, so that a stream does not depend on how it is cut


def check_labels(y: Tensor, classes: int, where: str) -> None:
    """Refuse labels outside 0..classes-1, naming the first record that has one."""
    wrong = ((y < 0) | (y >= classes)).nonzero()
    if len(wrong):
        record = int(wrong[0])
        raise Mistake(
            f"{where}: record {record} has label {int(y[record])}, but the {classes} classes are 0..{classes - 1}; "
            f"correct the label"
        )


class Cursor:
    """Where a walk over endless epochs of n examples stands, b at a time, for process `rank` of `world`."""

    def __init__(self, n: int, batch: int, rank: int = 0, world: int = 1):
        if n < 1:
            raise Mistake("the data is empty: there is no example to train on; check --data.path")
        if batch < 1:
            raise Mistake(f"--batch {batch}: a batch needs at least 1 example")
        if batch % world:
            raise Mistake(f"--batch {batch} does not divide evenly among {world} processes; use a multiple of {world}")
        self.n, self.batch, self.share, self.rank = n, batch, batch // world, rank
        self.epoch = self.position = 0

    def advance(self) -> Iterator[tuple[int, int, int]]:
        """This process's part of the next batch as pieces (epoch, start, stop); two where it crosses an epoch's end."""
        here = self.epoch * self.n + self.position
        start, end = here + self.rank * self.share, here + (self.rank + 1) * self.share
        self.epoch, self.position = divmod(here + self.batch, self.n)
        yield from cut_at_epochs(start, end, self.n)

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not 0 <= state["position"] < self.n:
            raise Mistake(
                f"the checkpoint is at example {state['position']} of an epoch, but the data has {self.n}; "
                f"resume with the data that the run was started with"
            )
        self.epoch, self.position = state["epoch"], state["position"]


def cut_at_epochs(start: int, end: int, n: int) -> Iterator[tuple[int, int, int]]:
    """The examples from start to end of endless epochs of n, as pieces (epoch, start, stop) within an epoch."""
    while start < end:
        epoch, first = divmod(start, n)
        stop = min(n, first + end - start)
        yield epoch, first, stop
        start += stop - first


class Shuffled:
    """An endless stream of minibatches, each example once an epoch. `ids` are the arrays' own, or row numbers.

    With `chance` = k every example brings fresh numbers u (k), uniform in −1..1, for augmentation: they belong to seed,
    epoch and row, not to the batch.

    With `drop_last` = b an epoch ends with its last whole batch of b: the n mod b examples that its order puts last are
    not seen in it. Without it (0) a batch may reach over the end of an epoch, and none is left out.
    """

    def __init__(
        self,
        arrays: dict[str, Tensor],
        batch: int,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        chance: int = 0,
        drop_last: int = 0,
    ):
        self.arrays, self.n = with_ids(arrays)
        seen = self.n - self.n % drop_last if 0 < drop_last <= self.n else self.n
        self.cursor, self.seed, self.chance = Cursor(seen, batch, rank, world), seed, chance
        largest = max(batch, drop_last)
        if largest > self.n:
            raise Mistake(f"--batch {largest} is more than the {self.n} examples of the data; use at most {self.n}")
        self._epoch: tuple[int, Tensor, Tensor] = (-1, torch.empty(0), torch.empty(0))

    def epoch(self, e: int) -> tuple[Tensor, Tensor]:
        """π_e, and u for every row; kept until another epoch is asked for."""
        if self._epoch[0] != e:
            random = generator(self.seed, e)
            order = torch.randperm(self.n, generator=random)
            self._epoch = e, order, 2 * torch.rand(self.n, self.chance, generator=random) - 1
        return self._epoch[1:]

    def __next__(self) -> dict[str, Tensor]:
        return join_batches([self._piece(*piece) for piece in self.cursor.advance()])

    def take(self, start: int, stop: int) -> dict[str, Tensor]:
        """The examples number start, .., stop − 1 of all epochs laid end to end; the stream stays where it stands."""
        return join_batches([self._piece(*piece) for piece in cut_at_epochs(start, stop, self.cursor.n)])

    def _piece(self, e: int, start: int, stop: int) -> dict[str, Tensor]:
        order, u = self.epoch(e)
        rows = order[start:stop]
        piece = take_examples(self.arrays, rows)
        return {**piece, "u": u[rows]} if self.chance else piece

    def state_dict(self) -> dict[str, Any]:
        return self.cursor.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.cursor.load_state_dict(state)


class Drawn:
    """An endless stream of fresh draws: epoch e is `draw(generator(seed, e), POOL)`, used once and in order."""

    def __init__(
        self,
        draw: Callable[[torch.Generator, int], dict[str, Tensor]],
        batch: int,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
    ):
        self.draw, self.seed = draw, seed
        self.cursor = Cursor(POOL, batch, rank, world)
        self._pool: tuple[int, dict[str, Tensor]] = (-1, {})

    def pool(self, e: int) -> dict[str, Tensor]:
        """The draws of an epoch, kept until another is asked for. `ids` count on from epoch to epoch."""
        if self._pool[0] != e:
            n = self.cursor.n
            drawn = self.draw(generator(self.seed, e), n)
            self._pool = e, {**drawn, "ids": torch.arange(e * n, (e + 1) * n)}
        return self._pool[1]

    def __next__(self) -> dict[str, Tensor]:
        return join_batches([self._piece(*piece) for piece in self.cursor.advance()])

    def _piece(self, e: int, start: int, stop: int) -> dict[str, Tensor]:
        return slice_examples(self.pool(e), start, stop)

    def state_dict(self) -> dict[str, Any]:
        return self.cursor.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.cursor.load_state_dict(state)


class InOrder:
    """The same examples in the same order, as often as asked: for validation and test."""

    def __init__(self, arrays: dict[str, Tensor], batch: int = 1024):
        self.arrays, self.n = with_ids(arrays)
        self.batch = batch

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for start in range(0, self.n, self.batch):
            yield slice_examples(self.arrays, start, start + self.batch)

    def __len__(self) -> int:
        return -(-self.n // self.batch)


def with_ids(arrays: dict[str, Tensor]) -> tuple[dict[str, Tensor], int]:
    """The arrays with `ids` (row numbers unless they have their own), and their common length."""
    lengths = {name: len(tensor) for name, tensor in arrays.items() if not is_ragged(arrays, name)}
    n = next(iter(lengths.values()), 0)
    if set(lengths.values()) - {n}:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise Mistake(f"the data's arrays differ in length ({told}); each example needs one entry in every array")
    return {"ids": torch.arange(n), **arrays}, n
