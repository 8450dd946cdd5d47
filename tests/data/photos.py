"""Small image files for tests: smooth colours, so that every image looks like itself only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate

CLASSES = ("cat", "dog", "owl")


def pixels(seed: int, height: int = 24, width: int = 32, channels: int = 3) -> np.ndarray:
    """8-bit colours (h, w, 3) or greys (h, w) that change slowly from place to place."""
    random = torch.Generator().manual_seed(seed)
    x = interpolate(torch.rand(1, channels, 4, 4, generator=random), size=(height, width), mode="bicubic")[0]
    whole: np.ndarray = (x.clamp(0, 1) * 255).to(torch.uint8).movedim(0, -1).numpy()
    return whole[..., 0] if channels == 1 else whole


def save(path: Path, array: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)
    return path


def folder(root: Path, each: int = 6, classes: tuple[str, ...] = CLASSES) -> Path:
    """root/CLASS/k.png: `each` images of every class, every third one higher than it is wide."""
    for c, name in enumerate(classes):
        for k in range(each):
            size = (32, 24) if k % 3 == 2 else (24, 32)
            save(root / name / f"{k}.png", pixels(100 * c + k, *size))
    return root
