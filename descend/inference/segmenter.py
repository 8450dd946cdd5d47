"""Segmentation: the class of every pixel, argmax_k z_k(x)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from descend.inference.answers import Answer, rank_classes, with_records
from descend.inference.images import ImageModel, name_images
from descend.inference.inputs import list_images


@dataclass(frozen=True)
class Segmenter:
    """Masks of images."""

    images: ImageModel
    labels: tuple[str, ...]
    takes = "images"

    def find_masks(self, x: Tensor) -> Tensor:
        """Standardized images (n, c, h, w) -> classes of their pixels (n, h', w'); h' < h where nothing is padded."""
        return torch.cat([z.argmax(dim=1).cpu() for z in self.images.run(x)])

    def segment(self, images: Sequence[str | Path] | Tensor) -> Tensor:
        """The masks of image files, or of pixels in 0..1, at the size that the model sees."""
        return self.find_masks(self.images.read_images(images))

    def measure_shares(self, images: Sequence[str | Path] | Tensor) -> list[Answer]:
        """How much of each image every class covers."""
        shares = one_hot(self.segment(images), len(self.labels)).float().mean(dim=(1, 2))
        return rank_classes(name_images(images), shares, self.labels)

    def predict(self, inputs: Sequence[str]) -> list[Answer]:
        """The shares of files, folders and patterns."""
        found = self.measure_shares(list_images(inputs))
        return with_records(found, [{"image": answer.input} for answer in found], [""] * len(found))
