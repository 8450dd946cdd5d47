"""Labelled images in three parts: train fits, valid selects, test reports once.

    x̂ = (x − μ_c) / σ_c       μ_c, σ_c of channel c over the TRAINING images only, σ with 1/n

The parts keep the share of every class. Pixels are 0..1 until they are standardized.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from descend.data.arrays import generator
from descend.errors import Mistake
from descend.weights.folder import write_json
from descend.weights.layout import read_json

PREPROCESSOR = "preprocessor_config.json"


@dataclass(frozen=True)
class Images:
    """Pixels x (n, c, h, w) in 0..1, classes y (n), and each image's record in the source it came from."""

    x: Tensor
    y: Tensor
    ids: Tensor

    def take(self, rows: Tensor) -> Images:
        return Images(self.x[rows], self.y[rows], self.ids[rows])


@dataclass(frozen=True)
class Splits:
    """The three parts, and what the classes are called."""

    train: Images
    valid: Images
    test: Images
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("train", "valid", "test"):
            if not len(getattr(self, name).y):
                raise Mistake(
                    f"no image is left for the {name} part; give more images, or other --data.valid, --data.test"
                )

    def resized(self, side: int) -> Splits:
        """Every image brought to side × side; 0 leaves them as they are."""
        if side < 0:
            raise Mistake(f"--data.size {side}: give the side in pixels, or 0 for images as they are")
        if not side:
            return self
        parts = {n: getattr(self, n) for n in ("train", "valid", "test")}
        return replace(self, **{n: replace(p, x=resize(p.x, side, side)) for n, p in parts.items()})


def resize(x: Tensor, height: int, width: int) -> Tensor:
    """Images (n, c, h, w) by bilinear interpolation, smoothed first where they shrink."""
    if x.shape[-2:] == (height, width):
        return x
    return interpolate(x, size=(height, width), mode="bilinear", antialias=True).clamp(0, 1)


def stratified(y: Tensor, shares: tuple[float, ...], seed: int = 0) -> list[Tensor]:
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
    labels: tuple[str, ...]

    @classmethod
    def fit(cls, splits: Splits) -> Self:
        """μ and σ of the training images. A channel that never changes keeps its scale (σ = 1)."""
        x = splits.train.x
        mean, std = x.double().mean(dim=(0, 2, 3)), x.double().std(dim=(0, 2, 3), correction=0)
        std = torch.where(std > 0, std, torch.ones_like(std))
        _, c, h, w = x.shape
        return cls((c, h, w), tuple(mean.tolist()), tuple(std.tolist()), splits.labels)

    def __call__(self, x: Tensor) -> Tensor:
        """Pixels (n, c, any, any) in 0..1 -> standardized images of the model's size."""
        channels, height, width = self.image
        if x.shape[1] != channels:
            raise Mistake(f"the image has {x.shape[1]} channels, the model was trained on {channels}; convert it")
        mean, std = (x.new_tensor(v)[:, None, None] for v in (self.mean, self.std))
        return (resize(x, height, width) - mean) / std

    def save(self, folder: Path) -> None:
        """Beside the weights, in the words of the public layout."""
        channels, height, width = self.image
        values = {"size": {"height": height, "width": width}, "num_channels": channels, "rescale_factor": 1 / 255}
        write_json(
            Path(folder) / PREPROCESSOR,
            {**values, "image_mean": self.mean, "image_std": self.std, "labels": self.labels},
        )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """What `save` wrote."""
        path = Path(folder) / PREPROCESSOR
        values = read_json(path)
        try:
            image = values["num_channels"], values["size"]["height"], values["size"]["width"]
            mean, std = tuple(values["image_mean"]), tuple(values["image_std"])
            return cls(image, mean, std, tuple(values["labels"]))
        except (KeyError, TypeError) as error:
            raise Mistake(f"{path} lacks {error}; it was not written by a training run") from None
