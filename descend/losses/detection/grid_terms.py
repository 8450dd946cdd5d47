"""What the losses of grid detectors have in common: which predictions learn an object, which learn that there is none,
and which classes are asked of the first.

    positive      responsible for an object: its cell, and the anchor of the most similar shape (`ops/detection/`)
    background    all others, but for those whose box overlaps an object by more than `ignore`: they are neither

Classes are not exclusive: an object that is listed twice, as "woman" and as "person", asks for both.

Systems: yolo-v3
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.ops.boxes import pairwise_iou
from descend.ops.detection.distances import widen
from descend.ops.detection.yolo_grid import Grid, GridFound, find_responsible


class Positives(NamedTuple):
    """The p predictions that learn an object, of all images of a batch."""

    image: Tensor
    """(p)"""
    place: Tensor
    """The number of the prediction within its image (p)."""
    owner: Tensor
    """The number of the object within its image (p)."""
    boxes: Tensor
    """The object's, x0, y0, x1, y1 (p, 4)."""
    grid: Grid
    """Cell, anchor and stride of each prediction."""

    def at(self, x: Tensor) -> Tensor:
        """Their part of something (b, n, ..)."""
        return x[self.image, self.place]


def find_positives(found: GridFound, truth: Boxes, tau: float = 1.0) -> tuple[Positives, Tensor]:
    """The responsible predictions, and the object of every prediction, −1 for none (b, n)."""
    owners = find_responsible(truth.boxes, truth.classes, found.grid, tau)
    image, place = (owners >= 0).nonzero(as_tuple=True)
    owner = owners[image, place]
    grid = Grid(*(part[place] for part in found.grid))
    return Positives(image, place, owner, truth.boxes[image, owner], grid), owners


@torch.no_grad()
def find_background(found: GridFound, truth: Boxes, owners: Tensor, ignore: float) -> Tensor:
    """Which predictions learn that there is nothing (b, n)."""
    if not truth.classes.shape[1]:
        return owners < 0
    overlap = pairwise_iou(widen(found.boxes), truth.boxes).masked_fill((truth.classes < 0)[:, None], 0)
    return (owners < 0) & (overlap.amax(dim=2) <= ignore)


def list_labels(positives: Positives, truth: Boxes, classes: int) -> Tensor:
    """1 for every class of a prediction's object, else 0 (p, K): all rows that have the very same box."""
    image = positives.image
    same = (truth.boxes[image] == positives.boxes[:, None]).all(dim=-1) & (truth.classes[image] >= 0)
    y = positives.boxes.new_zeros(len(image), classes)
    row, j = same.nonzero(as_tuple=True)
    y[row, truth.classes[image[row], j]] = 1
    return y


def image_area(grid: Grid) -> Tensor:
    """Of the image, in pixels: cells end where it does."""
    return ((grid.cells + 1) * grid.strides[:, None]).amax(dim=0).prod()


def weigh_small(boxes: Tensor, grid: Grid) -> Tensor:
    """2 − w h, with w, h as shares of the image (p): small objects count up to twice."""
    return 2 - (boxes[:, 2:] - boxes[:, :2]).prod(dim=-1) / image_area(grid)
