"""Images framed once and kept as bytes, or framed each time that they are asked for.

    canvases[rows]  ->  8-bit images on their ground (b, h, w, 3), or maps of instances (b, h, w)        rows (b)

A set that fits into the memory allowed is framed before the first batch, by as many threads as there are cores.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from descend.data.detection.framing import Placed, find_back
from descend.data.detection.objects import Objects, Pixels, StackedPixels
from descend.data.detection.prepare import DetectionPreprocessing, lay
from descend.data.images.files import cores

GIGABYTE = 2**30
NEAREST = 0  # Pillow's number


class Canvases:
    """Images placed on grounds of one size, which are filled with one colour (or, of a map, with 0)."""

    def __init__(self, pixels: Pixels, placed: Placed, fill: tuple[int, ...], resample: int, memory: float):
        self.pixels, self.placed, self.fill, self.resample = pixels, placed, fill, resample
        self.kept: Tensor | None = None
        if isinstance(pixels, StackedPixels) and pixels.x.shape[1:3] == placed.ground:
            self.kept = pixels.x
        elif len(pixels) * self.bytes_each <= memory * GIGABYTE:
            self.kept = self.frame(torch.arange(len(pixels)), cores())

    @property
    def bytes_each(self) -> int:
        return max(1, len(self.fill)) * self.placed.ground[0] * self.placed.ground[1]

    def __getitem__(self, rows: Tensor) -> Tensor:
        return self.frame(rows) if self.kept is None else self.kept[rows]

    def frame(self, rows: Tensor, threads: int = 1) -> Tensor:
        """Images of these rows, decoded, resized and laid on their ground."""
        ground = np.zeros((len(rows), *self.placed.ground, *((3,) if self.fill else ())), np.uint8)
        if self.fill:
            ground[:] = self.fill

        def fill(at: int) -> None:
            row = int(rows[at])
            need = int(self.placed.sizes[row].max())
            lay(self.pixels.load(row, need), ground[at], self.placed, row, self.resample)

        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(fill, range(len(rows))))
        else:
            for at in range(len(rows)):
                fill(at)
        return torch.from_numpy(ground)

    def place(self, rows: Tensor) -> Placed:
        """Where the images of these rows lie."""
        return Placed(self.placed.sizes[rows], self.placed.corner[rows], self.placed.ground)


class FramedObjects:
    """The images of a set on their grounds, their instances, and their boxes there. `memory` is in gigabytes."""

    def __init__(self, objects: Objects, prepare: DetectionPreprocessing, memory: float):
        self.objects, self.prepare = objects, prepare
        self.placed = prepare.framing.place(objects.sizes)
        self.back = find_back(self.placed, objects.sizes)
        self.images = Canvases(objects.pixels, self.placed, prepare.fill, prepare.resample, memory)
        self.instances: Canvases | None = None
        if objects.instances is not None:
            self.instances = Canvases(objects.instances, self.placed, (), NEAREST, memory)

    def __len__(self) -> int:
        return len(self.objects)
