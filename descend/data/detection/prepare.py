"""What an image goes through before a detector sees it: framed, standardized; fitted on training images, saved beside
the weights.

    x̂ = (x − μ_c) / σ_c on the image, 0 on the ground around it: the ground has the mean colour
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from descend.data.detection.framing import Framing, Placed, find_back
from descend.data.detection.objects import Objects, Pixels, StackedPixels
from descend.data.detection.processor import read_values, write_values
from descend.data.images.files import cores
from descend.data.images.frame import BILINEAR
from descend.data.images.labelled import PREPROCESSOR
from descend.files import items, read_json, write_json
from descend.weights.labels import Labels

SAMPLED = 500  # images whose pixels give μ and σ


class FramedImages(NamedTuple):
    """b images as a detector sees them."""

    x: Tensor
    """Standardized (b, 3, h, w)."""
    back: Tensor
    """scale x, scale y, left, top (b, 4): see `framing.to_original`."""
    size: Tensor
    """Height and width of the images themselves (b, 2)."""


@dataclass(frozen=True)
class DetectionPreprocessing:
    """The framing, and the mean and deviation of each channel in 0..1."""

    framing: Framing
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    labels: tuple[str, ...] = ()
    resample: int = BILINEAR
    """Pillow's number of the interpolation: 2 bilinear, 3 bicubic."""
    ground: tuple[float, ...] = ()
    """The colour around an image, in 0..1; (): the mean, so that it is 0 after standardizing."""

    @classmethod
    def fit(cls, train: Objects, framing: Framing, labels: tuple[str, ...]) -> Self:
        """μ and σ of the training images (`SAMPLED` of them); a channel that never changes keeps its scale."""
        mean, std = measure_pixels(train.pixels)
        return cls(framing, mean, std, labels)

    @property
    def fill(self) -> tuple[int, ...]:
        """The colour around an image, 0..255."""
        return tuple(min(255, max(0, round(255 * m))) for m in self.ground or self.mean)

    def __call__(self, images: Sequence[np.ndarray], size: Tensor | None = None) -> FramedImages:
        """8-bit images (h, w, 3) of any size; `size` (b, 2) says how large they were before they were decoded."""
        size = torch.tensor([image.shape[:2] for image in images]) if size is None else size
        placed = self.framing.place(size)
        ground = np.empty((len(images), *placed.ground, 3), np.uint8)
        ground[:] = self.fill
        for i, image in enumerate(images):
            lay(image, ground[i], placed, i, self.resample)
        return FramedImages(self.frame(torch.from_numpy(ground), placed), find_back(placed, size), size)

    def frame(self, pixels: Tensor, placed: Placed) -> Tensor:
        """8-bit images on their ground (b, h, w, 3) -> x̂ (b, 3, h, w); a ground of the mean colour is 0."""
        x = self.standardize(pixels)
        if self.ground:
            return x
        (left, top), (height, width) = placed.corner.T, placed.sizes.T
        row, column = torch.arange(x.shape[2])[None], torch.arange(x.shape[3])[None]
        down = (row >= top[:, None]) & (row < (top + height)[:, None])
        across = (column >= left[:, None]) & (column < (left + width)[:, None])
        return x if bool(down.all() and across.all()) else x * (down[:, :, None] & across[:, None])[:, None]

    def standardize(self, pixels: Tensor) -> Tensor:
        """8-bit (b, h, w, 3), or floats in 0..1 of (b, 3, h, w) -> x̂ (b, 3, h, w)"""
        x = pixels.movedim(3, 1).float() / 255 if pixels.dtype == torch.uint8 else pixels
        mean, std = (x.new_tensor(v)[:, None, None] for v in (self.mean, self.std))
        return ((x - mean) / std).contiguous()

    def save(self, folder: Path) -> None:
        """Beside the weights, in the words of the public layout (and the names of the classes)."""
        values = write_values(self.framing, self.mean, self.std, self.ground, self.resample)
        write_json(Path(folder) / PREPROCESSOR, {**values, "labels": self.labels})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """What `save` wrote, or the file of a public detector's image processor."""
        path = Path(folder) / PREPROCESSOR
        values = read_json(path)
        labels = items(values, "labels", str, path) if values.get("labels") is not None else None
        config = Path(folder) / "config.json"
        if labels is None and config.exists() and "id2label" in (found := read_json(config)):
            labels = list(Labels.read(found["id2label"]).names)
        return cls(**read_values(values, path), labels=tuple(labels or ()))

    def restore(self, x: Tensor) -> Tensor:
        """Standardized images back to pixels in 0..1."""
        mean, std = (x.new_tensor(v)[:, None, None] for v in (self.mean, self.std))
        return (x * std + mean).clamp(0, 1)


def lay(image: np.ndarray, ground: np.ndarray, placed: Placed, i: int, resample: int) -> None:
    """Image i, resized, on its ground (h, w, 3)."""
    (height, width), (left, top) = placed.sizes[i].tolist(), placed.corner[i].tolist()
    if image.shape[:2] != (height, width):
        from PIL import Image

        image = np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling(resample)))
    ground[top : top + height, left : left + width] = image


def measure_pixels(pixels: Pixels) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """μ and σ of the channels, in 0..1; σ = 1 where nothing changes."""
    rows = range(0, len(pixels), -(-len(pixels) // SAMPLED))

    def count(row: int) -> np.ndarray:
        channels = pixels.load(row, least=256).reshape(-1, 3).T
        return np.stack([np.bincount(c, minlength=256) for c in channels]) / channels.shape[1]

    with ThreadPoolExecutor(1 if isinstance(pixels, StackedPixels) else cores()) as pool:
        share = np.mean(list(pool.map(count, rows)), axis=0)
    values = np.arange(256) / 255
    mean = share @ values
    std = np.sqrt(np.maximum(share @ values**2 - mean**2, 0))
    return tuple(mean.tolist()), tuple(np.where(std > 1e-6, std, 1.0).tolist())
