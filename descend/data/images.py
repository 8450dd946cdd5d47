"""Labelled images in three parts: train fits, valid selects, test reports once.

    x̂ = (x − μ_c) / σ_c       μ_c, σ_c of channel c over the TRAINING images only

The parts keep the share of every class. Pixels are 0..1 until they are standardized.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

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
                raise Mistake(f"no image is left for the {name} part; give more images, or change --data.valid and --data.test")


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
    """What an image goes through before the model sees it: saved beside the weights, fitted on training images."""

    height: int
    width: int
    mean: tuple[float, ...]  # one per channel
    std: tuple[float, ...]
    labels: tuple[str, ...]

    @classmethod
    def fit(cls, train: Images, labels: tuple[str, ...]) -> Self:
        """μ and σ of each channel, σ with 1/n. A constant channel keeps its scale (σ = 1)."""
        _, _, height, width = train.x.shape
        mean = train.x.double().mean(dim=(0, 2, 3))
        std = train.x.double().std(dim=(0, 2, 3), correction=0)
        std = torch.where(std > 0, std, torch.ones_like(std))
        return cls(height, width, tuple(mean.tolist()), tuple(std.tolist()), labels)

    def __call__(self, x: Tensor) -> Tensor:
        """Pixels (.., c, h, w) in 0..1 -> standardized."""
        if x.shape[-3:] != (len(self.mean), self.height, self.width):
            raise Mistake(
                f"an image of {'×'.join(map(str, x.shape[-3:]))} (channels×height×width), but the model was trained "
                f"on {len(self.mean)}×{self.height}×{self.width}; resize it"
            )
        mean, std = x.new_tensor(self.mean), x.new_tensor(self.std)
        return (x - mean[:, None, None]) / std[:, None, None]

    def save(self, folder: Path) -> None:
        values = asdict(self)
        size = {"height": values.pop("height"), "width": values.pop("width")}
        named = {"image_mean": values["mean"], "image_std": values["std"], "labels": values["labels"]}
        write_json(folder / PREPROCESSOR, {"size": size, "rescale_factor": 1 / 255, **named})

    @classmethod
    def read(cls, folder: Path) -> Self:
        values = read_json(folder / PREPROCESSOR)
        try:
            size, mean, std = values["size"], values["image_mean"], values["image_std"]
            return cls(size["height"], size["width"], tuple(mean), tuple(std), tuple(values["labels"]))
        except (KeyError, TypeError) as error:
            raise Mistake(f"{folder / PREPROCESSOR} lacks {error}; it was not written by a training run") from None
