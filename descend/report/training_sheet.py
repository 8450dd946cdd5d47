"""A contact sheet of training images as the model is about to see them, framed and augmented: with their classes, their
masks, or the boxes of their objects."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.kinds.detect import DetectObjects
from descend.kinds.images import ClassifyImages
from descend.kinds.recipe import Recipe, fit_batch
from descend.kinds.segment import SegmentImages, fit_preprocessing
from descend.report.overlay import make_palette, overlay_mask
from descend.report.sheet import Row, write_png
from descend.views.boxes import draw_objects, enlarge, spread_colours, to_image

IMAGES, ACROSS = 16, 4
LEAST = 240  # pixels of a side in the sheet


def has_sheet(recipe: Recipe) -> bool:
    """Whether its training images can be drawn with what is to be learned of them."""
    return isinstance(recipe, DetectObjects | ClassifyImages | SegmentImages)


def write_sheet(recipe: Recipe, path: Path, flag: str) -> None:
    """The first images of a run in one PNG."""
    if not has_sheet(recipe):
        raise Mistake(
            f"{flag}: only recipes that detect, classify or segment images have a sheet of them; leave it out"
        )
    write_png(path, lay_in_rows(draw_training(recipe)), flag, smallest=1)


def draw_training(recipe: Any, count: int = IMAGES) -> list[np.ndarray]:
    """The first `count` images that training sees, each (h, w, 3) with its class, its mask or its boxes."""
    splits = recipe.read() if isinstance(recipe, ClassifyImages) else recipe.data.read()
    prepare = fit(recipe, splits)
    stream = recipe.stream(splits.train, prepare, fit_batch(recipe.loop, len(splits.train)))
    colours = spread_colours(len(splits.labels))
    found: list[np.ndarray] = []
    while len(found) < count:
        batch = next(stream)
        for i, x in islice(enumerate(prepare.restore(batch["x"])), count):
            if isinstance(recipe, DetectObjects):
                boxes, classes = batch["boxes"][i], batch["classes"][i]
                found.append(draw_example(x, boxes[classes >= 0], classes[classes >= 0], splits.labels, colours))
            elif isinstance(recipe, SegmentImages):
                laid = overlay_mask(x, batch["y"][i], make_palette(len(splits.labels)))
                found.append(enlarge((255 * laid).round().astype(np.uint8), LEAST)[0])
            else:
                found.append(name_example(x, splits.labels[int(batch["y"][i])]))
    return found[:count]


def fit(recipe: Any, splits: Any) -> Any:
    """What images go through before the model sees them."""
    if isinstance(recipe, DetectObjects):
        return recipe.fit_preprocessing(splits)
    if isinstance(recipe, SegmentImages):
        return fit_preprocessing(splits)
    return recipe.start.rescale(Preprocessing.fit(splits))


def name_example(x: Tensor, label: str) -> np.ndarray:
    """Pixels (c, h, w) in 0..1 with the class in the upper left corner."""
    pixels, _ = enlarge(to_image(x), LEAST)
    height, width = pixels.shape[:2]
    return draw_objects(pixels, [[0, 0, width, height]], [label], [(36, 89, 184)])


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
