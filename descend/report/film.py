"""Films: frames in a row, as an image that moves. No script and no player are needed."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from PIL import Image

from descend.web.markup import Html
from descend.web.parts import make_images

MILLISECONDS, LAST = 90, 1200  # of a frame, and of the last one
COLOURS = 64
MOST = 300  # frames


def encode_film(frames: np.ndarray) -> bytes:
    """Frames (k, h, w, 3) of 0..1 as a GIF that begins again."""
    pixels = (np.nan_to_num(frames).clip(0, 1) * 255).round().astype(np.uint8)
    if pixels.ndim != 4 or pixels.shape[-1] != 3 or not 1 <= len(pixels) <= MOST:
        raise ValueError(f"a film is 1 to {MOST} frames of shape (h, w, 3), not {pixels.shape}")
    sheet = Image.fromarray(np.concatenate([pixels[0], pixels[len(pixels) // 2], pixels[-1]]))
    palette = sheet.quantize(COLOURS, dither=Image.Dither.NONE)  # one for all frames: they do not flicker
    images = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in pixels]
    times = [MILLISECONDS] * (len(images) - 1) + [LAST]
    file = io.BytesIO()
    images[0].save(file, "GIF", save_all=True, append_images=images[1:], duration=times, loop=0)
    return file.getvalue()


def draw_film(content: dict[str, Any]) -> Html:
    """{"frames": (r, k, h, w, 3) of 0..1, "captions": [...]}: r films side by side."""
    films = np.asarray(content["frames"], dtype=float)
    if films.ndim != 5 or len(films) != len(content["captions"]):
        raise ValueError(f"{len(content['captions'])} captions for films of shape {films.shape}")
    sources = ["data:image/gif;base64," + base64.b64encode(encode_film(film)).decode() for film in films]
    return make_images(sources, content["captions"], min(300, 2 * films.shape[3]))
