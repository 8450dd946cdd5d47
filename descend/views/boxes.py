"""Objects drawn over images: a frame for each box, and a tag with its name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

READABLE = 320  # pixels of the shorter side from which tags can be read

Colour = tuple[int, int, int]


def enlarge(pixels: np.ndarray, least: int = READABLE) -> tuple[np.ndarray, int]:
    """An image (h, w, 3) whose shorter side has at least so many pixels, and how many times larger it is."""
    times = max(1, -(-least // min(pixels.shape[:2])))
    return pixels.repeat(times, axis=0).repeat(times, axis=1), times


def draw_objects(
    pixels: np.ndarray,
    boxes: Sequence[Sequence[float]] | Tensor,
    tags: Sequence[str],
    colours: Sequence[Colour],
) -> np.ndarray:
    """An image (h, w, 3) of 0..255 with boxes x0, y0, x1, y1 in its pixels, each with a tag and a colour."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(np.ascontiguousarray(pixels))
    pen = ImageDraw.Draw(image)
    shorter = min(pixels.shape[:2])
    line, font = max(1, round(shorter / 200)), ImageFont.load_default(max(11, shorter // 28))
    rows = boxes.tolist() if isinstance(boxes, Tensor) else boxes
    for box, tag, colour in zip(rows, tags, colours, strict=True):
        x0, y0, x1, y1 = box
        if x1 <= x0 or y1 <= y0:
            continue
        pen.rectangle((x0, y0, max(x1 - 1, x0), max(y1 - 1, y0)), outline=colour, width=line)
        if tag:
            left, top, right, bottom = pen.textbbox((0, 0), tag, font=font)
            height = bottom - top + 4
            at = y0 - height if y0 >= height else y0
            pen.rectangle((x0, at, x0 + right - left + 4, at + height), fill=colour)
            pen.text((x0 + 2 - left, at + 2 - top), tag, fill=contrast(colour), font=font)
    return np.asarray(image)


def contrast(colour: Colour) -> Colour:
    """Black or white, whichever is read more easily on this colour."""
    red, green, blue = colour
    return (0, 0, 0) if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else (255, 255, 255)


def spread_colours(count: int) -> list[Colour]:
    """Bright colours for classes, hues far apart."""
    import colorsys

    hues = (np.arange(count) * 0.618034 + 0.02) % 1
    tones = [colorsys.hsv_to_rgb(hue, 0.8 - 0.25 * (i % 2), 0.95) for i, hue in enumerate(hues)]
    return [(round(255 * r), round(255 * g), round(255 * b)) for r, g, b in tones]


def to_image(x: Tensor) -> np.ndarray:
    """Pixels (c, h, w) in 0..1 -> (h, w, 3) of 0..255"""
    return (x.expand(3, -1, -1) * 255).round().to(torch.uint8).movedim(0, -1).numpy()
