"""Outlines as masks: which pixel belongs to which object.

    polygons     [[x, y, x, y, ..], ..] in pixels, filled
    run lengths  {"size": [h, w], "counts": [n, n, ..]}: pixels down the columns, ground and object in turn

Later objects lie over earlier ones, the smaller over the larger. An object without an outline has its box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from descend.data.detection.objects import Objects
from descend.errors import Mistake

MOST = 255  # objects of an image


class OutlinedMaps:
    """Maps of the objects' numbers (h, w), drawn when they are asked for."""

    def __init__(self, sizes: Tensor, drawn: Sequence[list[tuple[int, Any]]]):
        self.sizes, self.drawn = sizes, drawn

    def __len__(self) -> int:
        return len(self.drawn)

    def load(self, row: int, least: int = 0) -> np.ndarray:
        from PIL import Image, ImageDraw

        height, width = self.sizes[row].tolist()
        image = Image.new("L", (width, height))
        pen = ImageDraw.Draw(image)
        for number, outline in self.drawn[row]:
            if isinstance(outline, dict):
                stencil = Image.fromarray(decode_runs(outline, height, width).astype(np.uint8) * 255)
                image.paste(number, (0, 0), stencil)
            else:
                for polygon in outline:
                    pen.polygon(polygon, fill=number)
        return np.asarray(image)

    def select(self, rows: Tensor) -> OutlinedMaps:
        return OutlinedMaps(self.sizes[rows], [self.drawn[i] for i in rows.tolist()])


def with_masks(objects: Objects) -> Objects:
    """The objects with maps of their outlines; those that have maps already, as they are."""
    if objects.instances is not None:
        return objects
    numbers = objects.instance_numbers
    if len(numbers) and int(numbers.max()) > MOST:
        name = objects.names[int(objects.owner[int(numbers.argmax())])]
        raise Mistake(f"{name} has {int(numbers.max())} objects; masks allow {MOST}; leave --data.masks out")
    drawn: list[list[tuple[int, Any]]] = [[] for _ in range(len(objects))]
    order = objects.area.argsort(descending=True, stable=True).tolist()
    for k in order:
        outline = objects.outlines[k] if objects.outlines else None
        drawn[int(objects.owner[k])].append((int(numbers[k]), check_outline(outline, objects.boxes[k].tolist())))
    return replace(objects, instances=OutlinedMaps(objects.sizes, drawn), numbers=numbers)


def check_outline(outline: Any, box: list[float]) -> Any:
    """Polygons of at least three points, or run lengths; else the corners of the box."""
    if isinstance(outline, dict) and isinstance(outline.get("counts"), list):
        return outline
    polygons = (
        [p for p in outline if isinstance(p, list) and len(p) >= 6 and not len(p) % 2]
        if isinstance(outline, list)
        else []
    )
    x0, y0, x1, y1 = box
    return polygons or [[x0, y0, x1 - 1, y0, x1 - 1, y1 - 1, x0, y1 - 1]]


def decode_runs(outline: dict[str, Any], height: int, width: int) -> np.ndarray:
    """Uncompressed run lengths as a mask (h, w); what does not fill the image is ground."""
    counts = np.asarray(outline["counts"], np.int64).clip(0)
    counts = np.minimum(counts.cumsum(), height * width)
    flat = np.repeat(np.arange(len(counts)) % 2 == 1, np.diff(counts, prepend=0))
    return np.pad(flat, (0, height * width - len(flat))).reshape(width, height).T


def box_masks(maps: Tensor, count: int) -> Tensor:
    """The extent of each number 1..count in a map (h, w) -> (count, 4); 0 where it does not occur."""
    seen = maps[None] == torch.arange(1, count + 1)[:, None, None]
    across, down = seen.any(dim=1), seen.any(dim=2)
    first = [line.int().argmax(dim=1) for line in (across, down)]
    last = [line.shape[1] - line.flip(1).int().argmax(dim=1) for line in (across, down)]
    return torch.stack([*first, *last], dim=1) * across.any(dim=1)[:, None]
