"""Images as a model sees them: decoded and standardized as in training, and put through it in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.contracts import HasCodes
from descend.data.images.files import cores
from descend.data.images.labelled import PREPROCESSOR, Preprocessing
from descend.errors import Mistake
from descend.inference.trained import BATCH, Trained


@dataclass(frozen=True)
class ImageModel:
    """A model of images, its preprocessing, and the names of its classes."""

    trained: Trained
    prepare: Preprocessing

    @classmethod
    def read(cls, trained: Trained) -> ImageModel:
        """With the preprocessing beside the weights."""
        if not (trained.folder / PREPROCESSOR).exists():
            raise Mistake(f"{trained.folder} holds a {trained.kind} without {PREPROCESSOR}: it does not take images")
        return cls(trained, Preprocessing.read(trained.folder))

    def read_images(self, images: Sequence[str | Path] | Tensor) -> Tensor:
        """Standardized images (n, c, h, w) from files, or from pixels (n, c, any, any) in 0..1."""
        if isinstance(images, Tensor):
            return self.prepare(images)
        pieces = [images[i : i + BATCH] for i in range(0, len(images), BATCH)]
        return torch.cat([self.prepare.files(piece, cores()) for piece in pieces])

    @torch.no_grad()
    def run(self, x: Tensor, forward: Callable[[Tensor], Any] | None = None) -> list[Any]:
        """What the model (or one of its methods) makes of standardized images, batch by batch."""
        forward = forward or self.trained.model
        return [forward(part.to(self.trained.device)) for part in x.split(BATCH)]

    def name_classes(self, classes: int) -> tuple[str, ...]:
        """From the preprocessing, else from the model's config, else numbers."""
        names: tuple[str, ...] = self.prepare.labels
        if len(names) != classes:
            names = tuple(getattr(getattr(self.trained.model.config, "labels", None), "names", ()))
        return names if len(names) == classes else tuple(map(str, range(classes)))


def name_images(images: Sequence[str | Path] | Tensor) -> list[str]:
    """What the answers call their inputs: files by their paths, tensors by number."""
    return [str(i) for i in range(len(images))] if isinstance(images, Tensor) else [str(path) for path in images]


def find_preprocessing(trained: Trained) -> Preprocessing | None:
    """What images go through: as the folder says; −1..1 for a model of codes without a word on it, such as a pipeline
    of diffusers; None where the model is not one of images."""
    if (trained.folder / PREPROCESSOR).exists():
        return Preprocessing.read(trained.folder)
    if not isinstance(trained.model, HasCodes):
        return None
    image = trained.model.image
    half = (0.5,) * image[0]
    return Preprocessing(image, half, half)
