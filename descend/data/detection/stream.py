"""Batches for a detector: of training images without end, of held-out ones in order.

    training    x (b, 3, h, w), boxes (b, m, 4) in pixels of x, classes (b, m), ids (b)        crowds are left out
    held out    the same with crowds, and back (b, 4), size (b, 2), true_boxes (b, m, 4) in pixels of the image itself,
                crowd (b, m), area (b, m)
    both        masks (b, h, w), where there are any: 1 + the number of the pixel's object in 0..m−1, 0 the ground

m is the most objects that an image of the batch has; what pads has class −1 and a box of 0. Order and randomness are a
function of seed and place, so a stream can be resumed, cut into micro-batches and shared among processes
(`data/streams/arrays.py`); processes may load batches ahead (`data/images/stream.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.detection.augment import CHANCE, ObjectAugment, Sampled, sample_objects
from descend.data.detection.canvases import FramedObjects
from descend.data.detection.framing import to_input
from descend.data.detection.objects import Objects, pad_objects
from descend.data.detection.prepare import DetectionPreprocessing
from descend.data.images.stream import Ahead
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.batches import find_items

NUMBERS = 2**23  # numbers that the images of a held-out batch may have


@dataclass(frozen=True)
class Changes:
    """How training images are changed, and what that needs to know of the run: when mosaics end, when a step begins."""

    augment: ObjectAugment
    batch: int
    """Images of a step, of all processes and micro-batches."""
    steps: int


class Numbered:
    """An order whose batches say the `place` of each example in the run, 0, 1, 2, .."""

    def __init__(self, order: Shuffled):
        self.order = order

    def __next__(self) -> Batch:
        cursor = self.order.cursor
        start = cursor.epoch * cursor.n + cursor.position + cursor.rank * cursor.share
        batch = next(self.order)
        return {**batch, "place": torch.arange(start, start + cursor.share)}

    def state_dict(self) -> dict[str, Any]:
        return self.order.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.order.load_state_dict(state)


@dataclass(frozen=True)
class LoadTraining:
    """What becomes of a batch of rows: {"row", "u", "place", "ids"} -> {"x", "boxes", "classes", "ids"}."""

    framed: FramedObjects
    seed: int
    changes: Changes | None

    def __call__(self, batch: Batch) -> Batch:
        row, place, framed = batch["row"], batch["place"], self.framed
        if self.changes is None:
            return {**load_plain(framed, row), "ids": batch["ids"]}
        augment, images = self.changes.augment, self.changes.batch
        late = place >= (1 - augment.close) * self.changes.steps * images
        side = augment.choose_side(framed.placed.ground[0], self.seed, int(place[0]) // images)
        found = sample_objects(framed, augment, row, batch["u"], late, side)
        return {**self.gather(found, len(row)), "ids": batch["ids"]}

    def gather(self, found: Sampled, b: int) -> Batch:
        classes = self.framed.objects.classes[found.items]
        batch = {
            "x": self.framed.prepare.standardize(found.x),
            "boxes": pad_objects(found.boxes, found.owner, b, 0.0),
            "classes": pad_objects(classes, found.owner, b, -1),
        }
        return batch if found.masks is None else {**batch, "masks": found.masks}


def load_plain(framed: FramedObjects, row: Tensor) -> Batch:
    """Images of these rows as they are, with their objects."""
    placed, objects = framed.images.place(row), framed.objects
    items, owner = find_items(objects.owner, row, len(objects))
    boxes = to_input(objects.boxes[items], framed.back[row][owner].double()).float()
    batch = {
        "x": framed.prepare.frame(framed.images[row], placed),
        "boxes": pad_objects(boxes, owner, len(row), 0.0),
        "classes": pad_objects(objects.classes[items], owner, len(row), -1),
    }
    if framed.instances is None:
        return batch
    counts = torch.bincount(owner, minlength=len(row))
    table = torch.zeros(len(row), 256, dtype=torch.uint8)
    number = torch.arange(1, len(items) + 1) - (counts.cumsum(0) - counts)[owner]
    table[owner, objects.instance_numbers[items]] = number.to(torch.uint8)
    old = framed.instances[row]
    return {**batch, "masks": table.gather(1, old.flatten(1).long()).view_as(old)}


@dataclass(frozen=True)
class LoadHeldOut:
    """The images as they are, and all that is needed to judge in pixels of the images themselves."""

    framed: FramedObjects

    def __call__(self, batch: Batch) -> Batch:
        row, objects = batch["row"], self.framed.objects
        items, owner = find_items(objects.owner, row, len(objects))
        b = len(row)
        return {
            **load_plain(self.framed, row),
            "ids": batch["ids"],
            "back": self.framed.back[row],
            "size": objects.sizes[row],
            "true_boxes": pad_objects(objects.boxes[items], owner, b, 0.0),
            "crowd": pad_objects(objects.crowd[items], owner, b, False),
            "area": pad_objects(objects.area[items], owner, b, 0.0),
        }


class HeldOutObjects:
    """The same images in the same order, as often as asked: for validation and test."""

    def __init__(self, objects: Objects, prepare: DetectionPreprocessing, memory: float = 1.0, batch: int = 0):
        framed = FramedObjects(objects, prepare, memory)
        self.objects, self.load = objects, LoadHeldOut(framed)
        rows = {"row": torch.arange(len(objects)), "ids": objects.ids}
        self.order = InOrder(rows, batch or max(1, min(256, NUMBERS // framed.images.bytes_each)))

    def __iter__(self) -> Iterator[Batch]:
        return map(self.load, self.order)

    def __len__(self) -> int:
        return len(self.order)


def shuffle_objects(
    objects: Objects,
    prepare: DetectionPreprocessing,
    batch: int,
    seed: int,
    where: tuple[int, int] = (0, 1),
    memory: float = 1.0,
    workers: int = 0,
    changes: Changes | None = None,
) -> Ahead:
    """Training batches of `batch` images: every image once an epoch, without crowds, freshly augmented."""
    changes = None if changes is None or changes.augment.idle else changes
    learned = objects.keep(~objects.crowd)
    rows: dict[str, Tensor] = {"row": torch.arange(len(learned)), "ids": learned.ids}
    order = Shuffled(rows, batch, seed, *where, chance=CHANCE if changes else 0)
    return Ahead(Numbered(order), LoadTraining(FramedObjects(learned, prepare, memory), seed, changes), workers)
