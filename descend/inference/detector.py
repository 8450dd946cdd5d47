"""Detection: the objects of images, each with its class, its score and its box in pixels of the original image.

    image of any size  →  framed for the model  →  decode  →  boxes back in the image's own pixels, cut at its edges

`least` is the score below which nothing is told: 0.25 for people, 0.001 where a whole precision-recall curve is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.data.detection.framing import to_original
from descend.data.detection.prepare import DetectionPreprocessing
from descend.data.images.files import decode
from descend.errors import Mistake
from descend.inference.inputs import list_images
from descend.inference.trained import Trained
from descend.nn.convolution.folding import fold
from descend.ops.detection.augmented import PLAIN_AND_MIRRORED, MergeByFusion, View, look_again

LEAST, MOST = 0.25, 100
TOGETHER = 8  # images that go through a detector together
SIDES = ("left", "top", "right", "bottom")

Image = str | Path | np.ndarray
"""A file, or 8-bit pixels (h, w, 3)."""


class Detection(NamedTuple):
    """One object."""

    label: str
    score: float
    box: tuple[float, float, float, float]
    """x0, y0, x1, y1 in pixels of the original image."""


@dataclass(frozen=True)
class Detected:
    """The objects of an image, the best first."""

    input: str
    size: tuple[int, int]
    """Height and width of the image."""
    objects: tuple[Detection, ...]

    def as_json(self, top: int) -> dict[str, Any]:
        """All objects; `top` counts classes, of which an object has one."""
        height, width = self.size
        objects = [{"label": o.label, "score": o.score, "box": list(o.box)} for o in self.objects]
        return {"input": self.input, "width": width, "height": height, "objects": objects}

    def as_rows(self) -> list[dict[str, Any]]:
        """A row for each object; none for an image without one."""
        return [
            {"image": self.input, "prediction": o.label, "score": o.score, **dict(zip(SIDES, o.box, strict=True))}
            for o in self.objects
        ]

    def compare(self) -> list[tuple[str | float, str | float]]:
        """Boxes are judged by `descend evaluate RUN --data.path FOLDER`."""
        return []


@dataclass(frozen=True)
class Detector:
    """Objects of images."""

    trained: Trained
    prepare: DetectionPreprocessing
    labels: tuple[str, ...]
    least: float = LEAST
    views: tuple[View, ...] = ()
    """Test-time augmentation: mirrored and scaled copies of an image that are looked at as well."""
    takes = "images"

    @classmethod
    def read(cls, trained: Trained) -> Detector:
        """With the preprocessing beside the weights; classes are named there or in the model's config. Batch norms are
        folded into their convolutions: the same numbers to rounding, sooner."""
        prepare = DetectionPreprocessing.read(trained.folder)
        names = prepare.labels or trained.model.config.labels.names
        return cls(Trained(fold(trained.model), trained.folder), prepare, names)

    def above(self, threshold: float) -> Detector:
        """The same, telling objects from this score on."""
        if not 0 <= threshold <= 1:
            raise Mistake(f"--threshold {threshold}: a score is 0 to 1")
        return replace(self, least=threshold)

    def again(self, views: Sequence[View] = PLAIN_AND_MIRRORED) -> Detector:
        """The same, looking at several views of each image: steadier boxes, for as many times the work."""
        return replace(self, views=tuple(views))

    def detect(self, images: Sequence[Image], least: float | None = None) -> list[Detected]:
        """The objects of each image."""
        return list(self.detect_each(images, least))

    def detect_each(self, images: Sequence[Image], least: float | None = None) -> Iterator[Detected]:
        """The same, a few at a time: the memory does not grow with the number of images."""
        least = self.least if least is None else least
        for start in range(0, len(images), TOGETHER):
            part = images[start : start + TOGETHER]
            pixels = [image if isinstance(image, np.ndarray) else decode(image, 3) for image in part]
            names = [str(start + i) if isinstance(image, np.ndarray) else str(image) for i, image in enumerate(part)]
            found = self.find_boxes(pixels, least)
            for i, name in enumerate(names):
                height, width = pixels[i].shape[:2]
                yield Detected(name, (height, width), self.name_objects(found, i))

    @torch.no_grad()
    def find_boxes(self, pixels: Sequence[np.ndarray], least: float) -> Boxes:
        """Objects of 8-bit images (h, w, 3) of any size, in pixels of each image."""
        framed = self.prepare(pixels)
        found = self.look(framed.x.to(self.trained.device), least)
        if not found.boxes.isfinite().all():
            raise Mistake("the model's boxes are not numbers (NaN or infinity): its weights are damaged; copy it again")
        boxes = to_original(found.boxes.cpu(), framed.back, framed.size)
        return Boxes(boxes, found.classes.cpu(), found.scores.cpu())

    def look(self, x: Tensor, least: float) -> Boxes:
        """Objects of framed images (b, c, h, w): of each as it is, or of all its views, fused."""
        model = self.trained.model

        def answer(x: Tensor) -> Boxes:
            return model.decode(model(x), least, MOST)

        if not self.views:
            return answer(x)
        found = look_again(answer, x, self.views, MergeByFusion(most=MOST), model.stride)
        return found._replace(classes=found.classes.masked_fill(found.scores < least, -1))

    def name_objects(self, found: Boxes, image: int) -> tuple[Detection, ...]:
        """The objects of one image."""
        there = found.classes[image] >= 0
        rows = (part[image][there].tolist() for part in (found.classes, found.scores, found.boxes))
        return tuple(Detection(self.labels[k], score, tuple(box)) for k, score, box in zip(*rows, strict=True))

    def predict(self, inputs: Sequence[str]) -> list[Detected]:
        """The objects of files, folders and patterns."""
        return self.detect(list_images(inputs))
