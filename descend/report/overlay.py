"""Masks over images: the image, the truth, the answer, and where the answer errs.

shown = (1 − a) image + a colour of the class        a = 0.65 inside, 1 at the edge of a region; class 0 is not tinted
"""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np

from descend.web.markup import Html, html, join
from descend.web.palette import LIGHT, read_colour
from descend.web.parts import make_images
from descend.web.pixels import encode_image

GREY = LIGHT[5]
VOID = 255  # no class: shown grey
TINT, DIM = 0.65, 0.35
WRONG = np.array([0.93, 0.11, 0.14])


def make_palette(classes: int) -> np.ndarray:
    """A colour for each class (classes, 3) in 0..1: the palette's, then hues that lie far apart. Class 0 is grey."""
    tones = [read_colour(colour) for colour in LIGHT if colour != GREY]
    turns = (np.arange(max(classes - 1 - len(tones), 0)) * 0.618034) % 1
    tones += [colorsys.hsv_to_rgb(turn, 0.85 - 0.25 * (i % 2), 0.95) for i, turn in enumerate(turns)]
    return np.array([(0.5, 0.5, 0.5), *tones])[:classes]


def overlay_mask(image: Any, mask: Any, colours: Any) -> np.ndarray:
    """An image (c, h, w) in 0..1 with its mask (h, w) laid over it: (h, w, 3) in 0..1. `colours` is (classes, 3)."""
    pixels, y, tones = as_rgb(image), np.asarray(mask).astype(int), np.asarray(colours, dtype=float)
    if y.shape != pixels.shape[:2]:
        raise ValueError(f"the mask is {y.shape}, the image {pixels.shape[:2]}")
    if y[y != VOID].max(initial=0) >= len(tones):
        raise ValueError(f"class {y[y != VOID].max()} has no colour; there are {len(tones)}")
    tint = np.where((y == VOID)[..., None], 0.5, tones[np.where(y == VOID, 0, y)])
    strength = np.where(y == 0, 0.0, np.where(find_edges(y), 1.0, TINT))[..., None]
    return (1 - strength) * pixels + strength * tint


def mark_errors(image: Any, truth: Any, answer: Any) -> np.ndarray:
    """The image dimmed, with red where the answer is not the truth: (h, w, 3) in 0..1."""
    y = np.asarray(truth)
    wrong = (y != np.asarray(answer)) & (y != VOID)
    return np.where(wrong[..., None], WRONG, DIM * as_rgb(image))


def as_rgb(image: Any) -> np.ndarray:
    """(c, h, w) -> (h, w, 3); one channel becomes grey."""
    pixels = np.asarray(image, dtype=float)
    if pixels.ndim != 3 or pixels.shape[0] not in (1, 3):
        raise ValueError(f"an image has shape (1, h, w) or (3, h, w), not {pixels.shape}")
    return np.broadcast_to(pixels, (3, *pixels.shape[1:])).transpose(1, 2, 0)


def find_edges(y: np.ndarray) -> np.ndarray:
    """Pixels whose right or lower neighbour has another class."""
    found = np.zeros(y.shape, dtype=bool)
    found[:-1] |= y[:-1] != y[1:]
    found[:, :-1] |= y[:, :-1] != y[:, 1:]
    return found


def draw_masks(content: dict[str, Any]) -> Html:
    """{"images" (n, c, h, w), "truth", "answers" (n, h, w), "labels", "captions"}: four images per row."""
    labels = [str(name) for name in content["labels"]]
    colours = make_palette(len(labels))
    side = max(96, min(220, 3 * np.asarray(content["images"]).shape[-1]))
    parts = (content[name] for name in ("images", "truth", "answers", "captions"))
    rows = []
    for image, truth, answer, caption in zip(*parts, strict=True):
        images = {
            str(caption): as_rgb(image),
            "truth": overlay_mask(image, truth, colours),
            "prediction": overlay_mask(image, answer, colours),
            "errors": mark_errors(image, truth, answer),
        }
        rows.append(make_images([encode_image(pixels) for pixels in images.values()], list(images), side))
    keys = [
        html('<span><i style="background:rgb({:.0f},{:.0f},{:.0f})"></i>{}</span>', *(255 * colour), name)
        for name, colour in list(zip(labels, colours, strict=True))[1:]
    ]
    return join([html('<p class="legend">{}</p>', keys), *rows])
