"""Masks over pictures: the image, the truth, the answer, and where the answer errs.

shown = (1 − a) image + a colour of the class        a = 0.65 inside, 1 at the edge of a region; class 0 is not tinted
"""

from __future__ import annotations

import colorsys
from html import escape
from typing import Any

import numpy as np

from descend.report.heat import png

VOID = 255  # no class: shown grey
TINT, DIM = 0.65, 0.35
WRONG = np.array([0.93, 0.11, 0.14])


def palette(classes: int) -> np.ndarray:
    """A colour for each class (classes, 3) in 0..1; neighbours in number lie far apart in hue. Class 0 is grey."""
    turns = (np.arange(max(classes - 1, 0)) * 0.618034) % 1
    tones = [colorsys.hsv_to_rgb(turn, 0.85 - 0.25 * (i % 2), 0.95) for i, turn in enumerate(turns)]
    return np.array([(0.5, 0.5, 0.5), *tones])[:classes]


def overlay(image: Any, mask: Any, colours: Any) -> np.ndarray:
    """An image (c, h, w) in 0..1 with its mask (h, w) laid over it: (h, w, 3) in 0..1. `colours` is (classes, 3)."""
    picture, y, tones = rgb(image), np.asarray(mask).astype(int), np.asarray(colours, dtype=float)
    if y.shape != picture.shape[:2]:
        raise ValueError(f"the mask is {y.shape}, the image {picture.shape[:2]}")
    if y[y != VOID].max(initial=0) >= len(tones):
        raise ValueError(f"class {y[y != VOID].max()} has no colour; there are {len(tones)}")
    tint = np.where((y == VOID)[..., None], 0.5, tones[np.where(y == VOID, 0, y)])
    strength = np.where(y == 0, 0.0, np.where(edges(y), 1.0, TINT))[..., None]
    laid: np.ndarray = (1 - strength) * picture + strength * tint
    return laid


def errors(image: Any, truth: Any, answer: Any) -> np.ndarray:
    """The image dimmed, with red where the answer is not the truth: (h, w, 3) in 0..1."""
    y = np.asarray(truth)
    wrong = (y != np.asarray(answer)) & (y != VOID)
    shown: np.ndarray = np.where(wrong[..., None], WRONG, DIM * rgb(image))
    return shown


def rgb(image: Any) -> np.ndarray:
    """(c, h, w) -> (h, w, 3); one channel becomes grey."""
    pixels = np.asarray(image, dtype=float)
    if pixels.ndim != 3 or pixels.shape[0] not in (1, 3):
        raise ValueError(f"an image has shape (1, h, w) or (3, h, w), not {pixels.shape}")
    return np.broadcast_to(pixels, (3, *pixels.shape[1:])).transpose(1, 2, 0)


def edges(y: np.ndarray) -> np.ndarray:
    """Pixels whose right or lower neighbour has another class."""
    found = np.zeros(y.shape, dtype=bool)
    found[:-1] |= y[:-1] != y[1:]
    found[:, :-1] |= y[:, :-1] != y[:, 1:]
    return found


def masks(content: dict[str, Any]) -> str:
    """{"images" (n, c, h, w), "truth", "answers" (n, h, w), "labels", "captions"}: four pictures a row."""
    labels = [str(name) for name in content["labels"]]
    colours = palette(len(labels))
    side = max(96, min(220, 3 * np.asarray(content["images"]).shape[-1]))
    rows = []
    for image, y, answer, caption in zip(
        *(content[k] for k in ("images", "truth", "answers", "captions")), strict=True
    ):
        pictures = {
            str(caption): rgb(image),
            "truth": overlay(image, y, colours),
            "answer": overlay(image, answer, colours),
            "where it errs": errors(image, y, answer),
        }
        cells = [
            f'<figure><img src="{png((p.clip(0, 1) * 255).round().astype(np.uint8))}" alt="">'
            f"<figcaption>{escape(said)}</figcaption></figure>"
            for said, p in pictures.items()
        ]
        rows.append(f'<div class="images" style="--side:{side}px;margin-bottom:12px">{"".join(cells)}</div>')
    keys = "".join(
        f'<span><i style="background:rgb({",".join(str(round(255 * v)) for v in colour)})"></i>{escape(name)}</span>'
        for name, colour in list(zip(labels, colours, strict=True))[1:]
    )
    return f'<p class="legend">{keys}</p>' + "".join(rows)
