"""Labelled images in three parts: train fits, valid selects, test reports once.

    x̂ = (x − μ_c) / σ_c       μ_c, σ_c of channel c over the TRAINING images only, σ with 1/n

The parts keep the share of every class. Pixels are 0..1 until they are standardized.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from descend.data.images.files import decode_all
from descend.data.images.frame import BILINEAR, Frame
from descend.data.images.lazy import Bytes
from descend.data.images.processor import understood, write_processor
from descend.data.streams.arrays import generator
from descend.errors import Mistake
from descend.files import items, read_json, write_json
from descend.weights.labels import Labels

PREPROCESSOR = "preprocessor_config.json"
SAMPLED = 1000  # files whose pixels give μ and σ


@dataclass(frozen=True)
class Images:
    """Pixels x (n, c, h, w) in 0..1, classes y (n), and each image's record in the source it came from."""

    x: Any
    """A tensor, or `Bytes` or `Files` (see `image_pixels`), which give tensors for x[rows]."""
    y: Tensor
    ids: Tensor

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Tensor) -> Images:
        x = self.x[rows] if isinstance(self.x, Tensor) else self.x.select(rows)
        return Images(x, self.y[rows], self.ids[rows])


@dataclass(frozen=True)
class Splits:
    """The three parts, and what the classes are called."""

    train: Images
    valid: Images
    test: Images
    labels: tuple[str, ...]
    names: tuple[str, ...] = ()
    """What record i is called, e.g. its file; nothing where records have no names."""
    frame: Frame | None = None
    """How image files became images of this size."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts about the data, for plan and report."""

    def __post_init__(self) -> None:
        for name in ("train", "valid", "test"):
            if not len(getattr(self, name).y):
                raise Mistake(
                    f"no image is left for the {name} part; give more images, or other --data.valid, --data.test"
                )

    def resize(self, side: int) -> Splits:
        """Every image resized to side × side; 0 leaves them as they are."""
        if side < 0:
            raise Mistake(f"--data.size {side}: give the side in pixels, or 0 for images as they are")
        if not side:
            return self
        parts = {n: getattr(self, n) for n in ("train", "valid", "test")}
        return replace(self, **{n: replace(p, x=brought_to(p.x, side)) for n, p in parts.items()})


def brought_to(x: Any, side: int) -> Any:
    """Images of side × side; bytes stay bytes."""
    if not isinstance(x, Bytes):
        return resize(x, side, side)
    if x.shape[2:] == (side, side):
        return x
    pieces = [resize(x[rows], side, side) for rows in torch.arange(len(x)).split(1024)]
    return Bytes(torch.cat([(255 * piece).round().to(torch.uint8) for piece in pieces]))


def resize(x: Tensor, height: int, width: int) -> Tensor:
    """Images (n, c, h, w) by bilinear interpolation, smoothed first where they shrink."""
    if x.shape[-2:] == (height, width):
        return x
    return interpolate(x, size=(height, width), mode="bilinear", antialias=True).clamp(0, 1)


def split_by_class(y: Tensor, shares: tuple[float, ...], seed: int = 0) -> list[Tensor]:
    """Rows of each part and, last, of the rest, so that every class is cut in these shares (to the nearest example)."""
    parts: list[list[Tensor]] = [[] for _ in range(len(shares) + 1)]
    for label in y.unique().tolist():
        rows = (y == label).nonzero().flatten()
        rows = rows[torch.randperm(len(rows), generator=generator(seed, label))]
        cuts = [round(len(rows) * sum(shares[: i + 1])) for i in range(len(shares))]
        for part, piece in zip(parts, rows.tensor_split(cuts), strict=True):
            part.append(piece)
    return [torch.cat(part).sort().values for part in parts]


def check_shares(valid: float, test: float) -> None:
    """The shares held out must leave something to train on."""
    if valid <= 0 or test <= 0 or valid + test >= 1:
        raise Mistake(
            f"--data.valid {valid} and --data.test {test}: both must be above 0 and their sum below 1, e.g. 0.15 each"
        )


@dataclass(frozen=True)
class Preprocessing:
    """What an image goes through before the model sees it: fitted on training images, saved beside the weights."""

    image: tuple[int, int, int]
    """Channels, height, width."""
    mean: tuple[float, ...]
    """μ of each channel."""
    std: tuple[float, ...]
    labels: tuple[str, ...] = ()
    edges: tuple[int, ...] = ()
    """How an image becomes an image of this size: see `Frame`."""
    resample: int = BILINEAR
    order: str = "rgb"
    """The order of the model's channels; "bgr" turns it round."""

    @classmethod
    def fit(cls, splits: Splits) -> Self:
        """μ and σ of the training images. A channel that never changes keeps its scale (σ = 1)."""
        mean, std = statistics(splits.train.x)
        std = torch.where(std > 0, std, torch.ones_like(std))
        _, c, h, w = splits.train.x.shape
        frame = splits.frame or Frame(h, w)
        values = tuple(mean.tolist()), tuple(std.tolist())
        return cls((c, h, w), *values, splits.labels, frame.edges, frame.resample)

    @property
    def frame(self) -> Frame:
        return Frame(*self.image[1:], self.edges, self.resample)

    def __call__(self, x: Tensor) -> Tensor:
        """Pixels (n, c, any, any) in 0..1 -> standardized images of the model's size."""
        if x.shape[1] != self.image[0]:
            raise Mistake(f"the image has {x.shape[1]} channels, the model was trained on {self.image[0]}; convert it")
        return self.standardize(self.frame.of_tensors(x))

    def standardize(self, x: Tensor) -> Tensor:
        """x̂ of images that have the model's size already."""
        mean, std = (x.new_tensor(v)[:, None, None] for v in (self.mean, self.std))
        return ((x.flip(1) if self.order == "bgr" else x) - mean) / std

    def restore(self, x: Tensor) -> Tensor:
        """Standardized images back to pixels in 0..1, red first."""
        mean, std = (x.new_tensor(v)[:, None, None] for v in (self.mean, self.std))
        pixels = (x * std + mean).clamp(0, 1)
        return pixels.flip(1) if self.order == "bgr" else pixels

    def files(self, paths: Sequence[str | Path], workers: int = 1) -> Tensor:
        """Image files as the model sees them; the very numbers that training on these files gave."""
        return self.standardize(decode_all(paths, self.image[0], self.frame, workers).float() / 255)

    def save(self, folder: Path) -> None:
        """Beside the weights, in the words of the public layout (and the names of the classes)."""
        values = write_processor(self.image, self.mean, self.std, self.edges, self.resample, self.order)
        write_json(Path(folder) / PREPROCESSOR, {**values, "labels": self.labels})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """What `save` wrote, now or in an older version, or the file of a public image processor."""
        path = Path(folder) / PREPROCESSOR
        values = read_json(path)
        labels = items(values, "labels", str, path) if values.get("labels") is not None else None
        config = Path(folder) / "config.json"
        if labels is None and config.exists() and "id2label" in (found := read_json(config)):
            labels = list(Labels.read(found["id2label"]).names)
        return cls(**understood(values, path), labels=tuple(labels or ()))


def statistics(x: Any) -> tuple[Tensor, Tensor]:
    """μ_c and σ_c (c) of images: of all in memory, or of at most `SAMPLED` files, evenly spaced."""
    if isinstance(x, Tensor):
        return x.double().mean(dim=(0, 2, 3)), x.double().std(dim=(0, 2, 3), correction=0)
    n = len(x)
    rows = torch.arange(n) if isinstance(x, Bytes) else torch.arange(0, n, -(-n // SAMPLED))
    sums, squares = torch.zeros(2, x.shape[1], dtype=torch.float64)
    for piece in rows.split(64):
        pixels = x[piece].double()
        sums, squares = sums + pixels.sum((0, 2, 3)), squares + (pixels**2).sum((0, 2, 3))
    count = len(rows) * x.shape[2] * x.shape[3]
    mean = sums / count
    return mean, (squares / count - mean**2).clamp(min=0).sqrt()
