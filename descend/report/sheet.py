"""Images side by side in one PNG file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from descend.errors import Mistake

SMALLEST = 160  # pixels of an image's side in the file

Row = list[np.ndarray]
"""Images (h, w, 3) of 0..255, side by side."""


def to_bytes(x: Tensor) -> np.ndarray:
    """(c, h, w) in 0..1 -> (h, w, 3) of 0..255"""
    return (x.expand(3, -1, -1) * 255).round().to(torch.uint8).movedim(0, -1).numpy()


def check_png(path: Path, flag: str) -> None:
    """Before anything is computed."""
    if path.suffix.lower() != ".png":
        raise Mistake(f"{flag} {path}: give a file that ends in .png")
    if not path.parent.is_dir():
        raise Mistake(f"{flag} {path}: the folder {path.parent} does not exist")


def check_new_png(path: Path, flag: str, replace: bool) -> None:
    """The same, and that nothing is there that should stay."""
    check_png(path, flag)
    if path.exists() and not replace:
        raise Mistake(f"{flag} {path} exists; give --replace to write it anew, or another name")


def write_png(path: Path, rows: list[Row], flag: str, smallest: int = SMALLEST) -> None:
    """All rows in one image, those with sides below `smallest` enlarged."""
    from PIL import Image

    sheet = np.concatenate([np.concatenate(row, axis=1) for row in rows], axis=0)
    times = max(1, -(-smallest // min(rows[0][0].shape[:2])))
    try:
        Image.fromarray(sheet.repeat(times, axis=0).repeat(times, axis=1)).save(path)
    except OSError as error:
        raise Mistake(f"{flag} {path} cannot be written: {error.strerror or error}") from None
