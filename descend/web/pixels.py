"""Arrays as inline PNG: nothing is fetched, nothing is written beside the page."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

ABOVE, BELOW = (43, 108, 216), (214, 104, 32)


def encode_png(pixels: np.ndarray) -> str:
    """Pixels (h, w), (h, w, 3) or (h, w, 4) of 0..255 as a data URL."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def encode_image(values: np.ndarray) -> str:
    """The same for pixels of 0..1; what lies outside is cut off, NaN is black."""
    return encode_png((np.nan_to_num(values).clip(0, 1) * 255).round().astype(np.uint8))


def tint(shade: np.ndarray) -> np.ndarray:
    """Darkness −1..1 as a colour of that opacity, so that it stands on light and on dark pages."""
    colour = np.where(shade[..., None] >= 0, ABOVE, BELOW)
    return np.concatenate([colour, np.abs(shade[..., None]).clip(0, 1) * 255], -1).round().astype(np.uint8)
