"""Translating images: from one domain to another, with pix2pix or CycleGAN, and back where the model goes both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.inference.images import ImageModel
from descend.inference.trained import Trained, load_trained


@runtime_checkable
class TranslatesImages(Protocol):
    """A model from image to image; `ways` are "there" and, where it goes both ways, "back"."""

    ways: tuple[str, ...]

    def translate(self, x: Tensor, way: str) -> Tensor: ...


@dataclass(frozen=True)
class Translator:
    """A model that turns images into other images."""

    images: ImageModel
    takes: str = field(default="images: it translates them", init=False)

    @property
    def trained(self) -> Trained:
        return self.images.trained

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Translator:
        """From a run or a model folder."""
        return cls.read(load_trained(run, checkpoint))

    @classmethod
    def read(cls, trained: Trained) -> Translator:
        if not isinstance(trained.model, TranslatesImages):
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not translate images")
        return cls(ImageModel.read(trained))

    def translate(self, images: Sequence[str | Path] | Tensor, back: bool = False) -> Tensor:
        """Images (n, c, h, w) in 0..1 from files, or from pixels in 0..1; each is brought to the model's size.

        Args:
            images: files or pixels.
            back: from the target to the source.
        """
        model = self.images.trained.model
        way = "back" if back else "there"
        if way not in model.ways:
            raise Mistake(f"--back: a {self.images.trained.kind} goes one way only; leave this flag out")
        made = self.images.run(self.images.read_images(images), lambda x: model.translate(x, way).cpu())
        return self.images.prepare.restore(torch.cat(made))
