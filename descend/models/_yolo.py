"""What the files of one-stage detectors share: boxes on a grid, and config.json with the classes as `id2label`.

score of a box = P(object) · P(its best class | object)        duplicates: suppressed above an IoU of τ, within a class
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.ops.detection.yolo_grid import GridFound, read_maps, score_classes
from descend.ops.nms import keep_best
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

COCO = Labels(tuple(f"LABEL_{k}" for k in range(80)))
VOC = Labels(tuple(f"LABEL_{k}" for k in range(20)))


class GridDetector(Pretrained):
    """images (b, channels, h, w) -> `GridFound`. A subclass gives `score_maps`: B (5 + K) maps of each level."""

    strides: tuple[int, ...]
    stretch: tuple[float, ...] = ()
    anchors: Tensor

    def keep_anchors(self, pairs: Sequence[float]) -> None:
        """w, h, w, h, .. in pixels, from the finest level to the coarsest -> `anchors` (levels, B, 2)"""
        shapes = torch.tensor(pairs, dtype=torch.float32).view(len(self.strides), -1, 2)
        self.register_buffer("anchors", shapes, persistent=False)

    def score_maps(self, x: Tensor) -> list[Tensor]:
        """From the finest level to the coarsest (b, B (5 + K), h, w)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> GridFound:
        return read_maps(self.score_maps(x), self.anchors, self.strides, self.stretch)

    def probabilities(self, logits: Tensor) -> Tensor:
        """P(class | object): each on its own."""
        return logits.sigmoid()

    def decode(self, found: GridFound, least: float = 0.001, most: int = 100) -> Boxes:
        """The best class of each box, without duplicates."""
        scores, classes = score_classes(found.objectness.sigmoid(), self.probabilities(found.logits))
        return keep_best(found.boxes, scores, classes, self.config.tau, least, most)

    def decode_sure(self, found: GridFound, objectness: float = 0.5, tau: float = 0.5, most: int = 100) -> Boxes:
        """The book's way (MF 24.6.2): boxes whose objectness is above ½, suppressed above an IoU of ½, the best 100."""
        sure = found.objectness.sigmoid()
        scores, classes = score_classes(sure, self.probabilities(found.logits))
        return keep_best(found.boxes, scores, classes.masked_fill(sure <= objectness, -1), tau, 0.0, most)


def check_anchors(pairs: Sequence[float], levels: int) -> None:
    """Refuse a number of anchors that the levels cannot share."""
    if not pairs or len(pairs) % (2 * levels):
        raise ValueError(f"{len(pairs)} numbers as anchors: give w and h of as many for each of {levels} levels")


def name_fields(config: type) -> Layout:
    """config.json with our own names, but for the labels."""
    names = [f.name for f in dataclasses.fields(config)]
    fields: dict[str, str | tuple[str, ...]] = {n: "id2label" if n == "labels" else n for n in names}
    return Layout(config.__name__.removesuffix("Config"), fields, parts={"labels": Labels}, library="descend")
