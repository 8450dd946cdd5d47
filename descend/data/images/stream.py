"""Batches of images, decoded and augmented here or in processes that work ahead; the batches are the same.

    order     rows, classes and random numbers u of batch k: a function of seed and k alone (`Shuffled`)
    load      x̂ = standardize(augment(pixels[rows], u))
    ahead     workers load batches k + 1, k + 2, .. while batch k is trained on; they come back in their order

The state is where the last batch that was handed out ended, not how far the workers are: a resumed stream loads again
what they had loaded, and gives the same batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from descend.contracts import Stream
from descend.data.images.augment import Augment
from descend.data.images.labelled import Images, Preprocessing
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.workers import begin_worker, register_end
from descend.errors import Mistake

Batch = dict[str, Tensor]
Loader = Callable[[Batch], Batch]
"""What becomes of a batch of rows."""
NUMBERS = 2**24  # pixels that a batch of validation images may have
DEPTH = 2  # batches that each worker loads ahead


@dataclass(frozen=True)
class Load:
    """What becomes of a batch of rows: {"row", "u", ..} -> {"x", ..}."""

    pixels: Any
    augment: Augment
    prepare: Preprocessing

    def __call__(self, batch: Batch) -> Batch:
        batch = dict(batch)
        x, u = self.pixels[batch.pop("row")], batch.pop("u", None)
        if u is not None:
            x = self.augment(x, u)
        return {"x": self.prepare.standardize(x), **batch}


class Loading(Dataset[Batch | Exception]):
    """`Load` in the form that torch's workers call. What is wrong with a file is handed on as it is (`receive`)."""

    def __init__(self, load: Loader):
        self.load = load

    def __getitem__(self, batch: Batch) -> Batch | Exception:
        try:
            return self.load(batch)
        except (Mistake, OSError) as error:
            return error


def receive(batch: Batch | Exception) -> Batch:
    """What a worker has sent: a batch, or what kept it from making one."""
    if isinstance(batch, Exception):
        raise batch
    return batch


class Ahead:
    """An endless stream of loaded batches; `workers` processes load them, or this one if there are none."""

    def __init__(self, order: Stream, load: Loader, workers: int = 0):
        self.order, self.load, self.workers = order, load, workers
        self.state = order.state_dict()
        self._states: deque[dict[str, Any]] = deque()
        self._batches: Iterator[Batch | Exception] | None = None

    def __next__(self) -> Batch:
        if not self.workers:
            return self.load(next(self.order))
        if self._batches is None:
            self._batches = iter(parallel(self.load, ask(self.order, self._states), self.workers))
        batch = receive(next(self._batches))
        self.state = self._states.popleft()
        return batch

    def state_dict(self) -> dict[str, Any]:
        return self.state if self.workers else self.order.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._batches = None  # its workers end with it
        self._states.clear()
        self.order.load_state_dict(state)
        self.state = self.order.state_dict()


def ask(order: Stream, states: deque[dict[str, Any]]) -> Iterator[Batch]:
    """What the workers are given, and the state that each batch leaves behind.

    Not a method: the workers end at once when the last reference to their stream goes, and a generator that held the
    stream would keep it until the garbage is collected, in an order in which each worker is waited for in vain.
    """
    while True:
        batch = next(order)
        states.append(order.state_dict())
        yield batch


class Walk:
    """The same images in the same order, as often as asked, a limited number of pixels at a time: for validation."""

    def __init__(self, images: Images, prepare: Preprocessing, workers: int = 0):
        self.workers = workers
        _, c, h, w = images.x.shape
        rows = {"row": torch.arange(len(images.y)), "y": images.y, "ids": images.ids}
        self.order = InOrder(rows, max(1, min(1024, NUMBERS // (c * h * w))))
        self.load = Load(images.x, Augment(()), prepare)
        self._loader: Iterable[Batch | Exception] | None = None

    def __iter__(self) -> Iterator[Batch]:
        if not self.workers or len(self.order) == 1:  # a single batch leaves nothing to be ahead of
            return map(self.load, self.order)
        if self._loader is None:
            self._loader = parallel(self.load, self.order, self.workers)
        return map(receive, self._loader)

    def __len__(self) -> int:
        return len(self.order)


def parallel(load: Loader, asked: Iterable[Batch], workers: int) -> Iterable[Batch | Exception]:
    """What is asked for, loaded by worker processes, in the order of asking. The workers stay for the next walk.

    The loader draws a seed for its workers when it starts, from a generator of its own: torch's belongs to the step.
    """
    sampler: Any = asked
    register_end()
    return DataLoader(
        Loading(load),
        batch_size=None,
        sampler=sampler,
        num_workers=workers,
        prefetch_factor=DEPTH,
        persistent_workers=True,
        generator=torch.Generator(),
        worker_init_fn=begin_worker,
    )


def shuffle_images(
    images: Images,
    prepare: Preprocessing,
    augment: Augment,
    batch: int,
    seed: int,
    where: tuple[int, int],
    workers: int,
    drop_last: int = 0,
) -> Ahead:
    """Training batches: every image once per epoch (see `Shuffled` for `drop_last`), freshly augmented."""
    rows = {"row": torch.arange(len(images.y)), "y": images.y, "ids": images.ids}
    order = Shuffled(rows, batch, seed, *where, chance=augment.chance, drop_last=drop_last)
    return Ahead(order, Load(images.x, augment, prepare), workers)
