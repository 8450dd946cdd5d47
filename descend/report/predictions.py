"""Answers to look at: each image beside where the model looked, or with its mask or its box laid over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from descend.data.images.files import decode
from descend.inference.detector import Detector
from descend.inference.image_classifier import ImageClassifier
from descend.inference.segmenter import Segmenter
from descend.inference.single_object_detector import SingleObjectDetector
from descend.interpret.overlay import overlay_heat
from descend.report.overlay import make_palette, overlay_mask
from descend.report.sheet import Row, to_bytes
from descend.views.boxes import draw_objects, enlarge, spread_colours
from descend.views.images import find_heat
from descend.views.localisation import FOUND, draw_boxes

SQUARE = 480  # pixels of an image with boxes in a sheet
HEATED = 16  # images whose heat is computed together


def draw_predictions(
    answerer: ImageClassifier | Segmenter | SingleObjectDetector | Detector, paths: list[Path]
) -> list[Row]:
    """A row for each image file: the image, and the same with what the model says of it."""
    if isinstance(answerer, Detector):
        return [fit_row(decode(path), draw_detections(answerer, path)) for path in paths]
    x = answerer.images.read_images(paths)
    pixels = answerer.images.prepare.restore(x)
    if isinstance(answerer, SingleObjectDetector):
        boxes = answerer.find_boxes(x)[1]
        return [[to_bytes(p), to_bytes(o)] for p, o in zip(pixels, draw_boxes(pixels, boxes, FOUND), strict=True)]
    if isinstance(answerer, Segmenter):
        return draw_masks(pixels, answerer.find_masks(x), len(answerer.labels))
    return draw_heat(answerer.model, x, pixels)


def draw_heat(model: Any, x: Tensor, pixels: Tensor) -> list[Row]:
    """The heat for the most likely class."""
    rows: list[Row] = []
    for part, seen in zip(x.split(HEATED), pixels.split(HEATED), strict=True):
        heat, _ = find_heat(model, part.to(next(model.parameters()).device))
        rows += [[to_bytes(p), to_bytes(o)] for p, o in zip(seen, overlay_heat(seen, heat.cpu()), strict=True)]
    return rows


def draw_masks(pixels: Tensor, masks: Tensor, classes: int) -> list[Row]:
    """The classes of the pixels, laid over the part of the image that they are about."""
    height, width = masks.shape[1:]
    top, left = (pixels.shape[2] - height) // 2, (pixels.shape[3] - width) // 2
    cut, colours = pixels[:, :, top : top + height, left : left + width], make_palette(classes)
    return [
        [to_bytes(p), (overlay_mask(p.numpy(), mask.numpy(), colours) * 255).round().astype(np.uint8)]
        for p, mask in zip(cut, masks, strict=True)
    ]


def draw_detections(answerer: Detector, path: Path) -> np.ndarray:
    """An image with its objects, each in the colour of its class."""
    pixels, times = enlarge(decode(path))
    [answer] = answerer.detect([path])
    colours = dict(zip(answerer.labels, spread_colours(len(answerer.labels)), strict=True))
    boxes = [[times * side for side in o.box] for o in answer.objects]
    tags = [f"{o.label} {o.score:.2f}" for o in answer.objects]
    return draw_objects(pixels, boxes, tags, [colours[o.label] for o in answer.objects])


def fit_row(image: np.ndarray, drawn: np.ndarray) -> Row:
    """Both on white grounds of one width, so that images of any size make one sheet."""
    from PIL import Image

    row = []
    for pixels in (image, drawn):
        picture = Image.fromarray(pixels)
        scale = SQUARE / max(picture.size)
        picture = picture.resize((max(1, round(picture.width * scale)), max(1, round(picture.height * scale))))
        ground = Image.new("RGB", (SQUARE, picture.height), "white")
        ground.paste(picture)
        row.append(np.asarray(ground))
    return row
