"""Classification and localisation: what the one object of an image is, and where.

Class probabilities, and a box x0, y0, x1, y1 as shares of width and height.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from descend.inference.answers import Answer, rank_classes, with_records
from descend.inference.images import ImageModel, name_images
from descend.inference.inputs import list_images, list_truths


@dataclass(frozen=True)
class SingleObjectDetector:
    """Classes and boxes of objects in images."""

    images: ImageModel
    labels: tuple[str, ...]
    takes = "images"

    def find_boxes(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Standardized images (n, c, h, w) -> class probabilities (n, K) and boxes (n, 4)."""
        found = self.images.run(x)
        p = torch.cat([located.logits for located in found]).softmax(dim=1)
        return p.cpu(), torch.cat([located.box for located in found]).cpu()

    def detect(self, images: Sequence[str | Path] | Tensor) -> list[Answer]:
        """The object of each image file, or of pixels in 0..1: its classes by probability, and its box."""
        p, boxes = self.find_boxes(self.images.read_images(images))
        ranked = rank_classes(name_images(images), p, self.labels)
        return [replace(answer, box=tuple(box)) for answer, box in zip(ranked, boxes.tolist(), strict=True)]

    def predict(self, inputs: Sequence[str]) -> list[Answer]:
        """The same of files, folders and patterns."""
        found = self.detect(list_images(inputs))
        return with_records(found, [{"image": answer.input} for answer in found], list_truths(inputs, self.labels))
