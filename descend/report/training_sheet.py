"""A contact sheet of training images with their objects, as the model is about to see them: framed and augmented."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from torch import Tensor

from descend.errors import Mistake
from descend.kinds.detect import DetectObjects
from descend.kinds.recipe import Recipe, fit_batch
from descend.report.sheet import Row, write_png
from descend.views.boxes import draw_objects, enlarge, spread_colours, to_image

IMAGES, ACROSS = 16, 4
LEAST = 240  # pixels of a side in the sheet


def write_sheet(recipe: Recipe, path: Path, flag: str) -> None:
    """The first images of a run, with their boxes, in one PNG."""
    if not isinstance(recipe, DetectObjects):
        raise Mistake(f"{flag}: only recipes that detect objects have a sheet of them; leave it out")
    write_png(path, lay_in_rows(draw_training(recipe)), flag, smallest=1)


def draw_training(recipe: DetectObjects, count: int = IMAGES) -> list[np.ndarray]:
    """The first `count` images that training sees, each (h, w, 3) with its boxes."""
    splits = recipe.data.read()
    prepare = recipe.fit_preprocessing(splits)
    stream = recipe.stream(splits.train, prepare, fit_batch(recipe.loop, len(splits.train)))
    colours = spread_colours(len(splits.labels))
    found: list[np.ndarray] = []
    while len(found) < count:
        batch = next(stream)
        for x, boxes, classes in zip(prepare.restore(batch["x"]), batch["boxes"], batch["classes"], strict=True):
            found.append(draw_example(x, boxes[classes >= 0], classes[classes >= 0], splits.labels, colours))
    return found[:count]


def draw_example(
    x: Tensor, boxes: Tensor, classes: Tensor, labels: tuple[str, ...], colours: list[tuple[int, int, int]]
) -> np.ndarray:
    """Pixels (3, h, w) in 0..1 with boxes (k, 4)."""
    pixels, times = enlarge(to_image(x), LEAST)
    names, tones = [labels[k] for k in classes.tolist()], [colours[k] for k in classes.tolist()]
    return draw_objects(pixels, times * boxes, names, tones)


def lay_in_rows(images: list[np.ndarray]) -> list[Row]:
    """Rows of `ACROSS` images on white grounds of one size, a line apart."""
    height, width = (max(image.shape[axis] for image in images) for axis in (0, 1))
    grounds = []
    for image in images + [np.full((1, 1, 3), 255, np.uint8)] * (-len(images) % ACROSS):
        ground = np.full((height + 4, width + 4, 3), 255, np.uint8)
        ground[: image.shape[0], : image.shape[1]] = image
        grounds.append(ground)
    return [grounds[i : i + ACROSS] for i in range(0, len(grounds), ACROSS)]
