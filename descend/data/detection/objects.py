"""Images and the objects in them: flat arrays, an owner for every object.

    boxes (k, 4)      x0, y0, x1, y1 in pixels of the image as it is seen upright; corners, so x1 − x0 is the width
    owner (k)         the image in 0..n−1 that each object belongs to, in order
    crowd (k)         a group, or an object that its annotator called difficult: neither learned nor counted as missed
    area (k)          of the object (its mask, where there is one), by which COCO calls it small, medium or large

An image without objects is an image like any other. Boxes are float64, so that what is read can be written back and is
judged by the file's own numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from descend.data.images.files import decode
from descend.data.streams.batches import find_items


class Pixels(Protocol):
    """n images of any size, each 8-bit (h, w, 3), or maps (h, w), when they are asked for."""

    def __len__(self) -> int: ...

    def load(self, row: int, least: int = 0) -> np.ndarray:
        """An image. One whose sides are far above `least` pixels may come smaller, in whole fractions."""
        ...

    def select(self, rows: Tensor) -> Pixels: ...


class StackedPixels:
    """Images of one size in memory (n, h, w, 3), or maps (n, h, w)."""

    def __init__(self, x: Tensor):
        if x.dtype != torch.uint8 or x.shape[3:] not in ((3,), ()):
            raise ValueError(f"8-bit images (n, h, w, 3) or maps (n, h, w), not {x.dtype} of {tuple(x.shape)}")
        self.x = x

    def __len__(self) -> int:
        return len(self.x)

    def load(self, row: int, least: int = 0) -> np.ndarray:
        return self.x[row].numpy()

    def select(self, rows: Tensor) -> StackedPixels:
        return StackedPixels(self.x[rows])


class PhotoFiles:
    """Image files, decoded and turned upright each time."""

    def __init__(self, paths: Sequence[str | Path]):
        self.paths = [str(path) for path in paths]

    def __len__(self) -> int:
        return len(self.paths)

    def load(self, row: int, least: int = 0) -> np.ndarray:
        return decode(self.paths[row], 3, least=least)

    def select(self, rows: Tensor) -> PhotoFiles:
        return PhotoFiles([self.paths[i] for i in rows.tolist()])


@dataclass(frozen=True)
class Objects:
    """n images with k objects."""

    pixels: Pixels
    sizes: Tensor
    """Height and width of each image (n, 2)."""
    boxes: Tensor
    owner: Tensor
    classes: Tensor
    """Numbers 0..classes−1 (k)."""
    crowd: Tensor
    area: Tensor
    ids: Tensor
    """The number of each image: the file's own (COCO), or its place in the whole set (n)."""
    names: tuple[str, ...]
    """What each image is called, e.g. its file (n)."""
    outlines: tuple[Any, ...] = ()
    """The shape of each object as its file has it: polygons [[x, y, ..], ..], a run-length code, or None; () where
    there are none (k)."""
    instances: Pixels | None = None
    """Whose pixel it is: maps (h, w) of the objects' numbers, 0 the ground (n)."""
    numbers: Tensor | None = None
    """The number of each object in its map (k); without it, 1, 2, .. in order."""

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def counts(self) -> Tensor:
        """Objects of each image (n)."""
        return torch.bincount(self.owner, minlength=len(self))

    @property
    def instance_numbers(self) -> Tensor:
        """The number of each object in the map of its image (k)."""
        if self.numbers is not None:
            return self.numbers
        counts = self.counts
        return torch.arange(1, len(self.owner) + 1) - (counts.cumsum(0) - counts)[self.owner]

    def take(self, rows: Tensor) -> Objects:
        """These images, in their order; one may be taken twice."""
        items, owner = find_items(self.owner, rows, len(self))
        return Objects(
            self.pixels.select(rows),
            self.sizes[rows],
            self.boxes[items],
            owner,
            self.classes[items],
            self.crowd[items],
            self.area[items],
            self.ids[rows],
            tuple(self.names[i] for i in rows.tolist()),
            tuple(self.outlines[i] for i in items.tolist()) if self.outlines else (),
            self.instances.select(rows) if self.instances is not None else None,
            self.numbers[items] if self.numbers is not None else None,
        )

    def keep(self, which: Tensor) -> Objects:
        """All images, and the objects where `which` (k) is true."""
        kept = which.nonzero().flatten()
        return replace(
            self,
            boxes=self.boxes[kept],
            owner=self.owner[kept],
            classes=self.classes[kept],
            crowd=self.crowd[kept],
            area=self.area[kept],
            numbers=self.instance_numbers[kept],
            outlines=tuple(self.outlines[i] for i in kept.tolist()) if self.outlines else (),
        )


@dataclass(frozen=True)
class DetectionSplits:
    """The three parts, and what the classes are called."""

    train: Objects
    valid: Objects
    test: Objects
    labels: tuple[str, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts about the data, for plan and report."""
    numbers: tuple[int, ...] = ()
    """The number of each class in the files it came from, which may begin at 1 and have gaps; (): 0, 1, 2, .."""


def pad_objects(values: Tensor, owner: Tensor, images: int, fill: float) -> Tensor:
    """Values of objects (k, ..) laid end to end -> (images, m, ..), m the most that an image has, but at least 1."""
    counts = torch.bincount(owner, minlength=images)
    most = max(1, int(counts.max())) if images else 1
    at = torch.arange(len(owner)) - (counts.cumsum(0) - counts)[owner]
    padded = values.new_full((images, most, *values.shape[1:]), fill)
    padded[owner, at] = values
    return padded
