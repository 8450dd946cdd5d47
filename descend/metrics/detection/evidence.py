"""What a detector is judged by: of each image what was found and what is true, in pixels of the original image.

Scores of a set (mean average precision, confusion) are no means over images, so a task collects these small tensors
image by image, and they are judged together once (`coco.py`, `confusion.py`, `errors.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.errors import Mistake
from descend.ops.boxes import area


class DetectionEvidence(NamedTuple):
    """Of one image, without padding."""

    boxes: Tensor
    """Found: x0, y0, x1, y1 (n, 4)."""
    classes: Tensor
    """(n)"""
    scores: Tensor
    """(n)"""
    true_boxes: Tensor
    """x0, y0, x1, y1 (m, 4)."""
    true_classes: Tensor
    """(m)"""
    crowd: Tensor
    """(m) bool: a region with many objects; what lies in it is neither right nor wrong."""
    area: Tensor
    """(m): of the object, by which it is small, medium or large; of its mask where there is one, else of its box."""


def collect(
    found: Boxes, truth: Boxes, crowd: Tensor | None = None, areas: Tensor | None = None
) -> list[DetectionEvidence]:
    """The evidence of a batch, on the CPU; what pads (class −1) is left out."""
    crowd = torch.zeros_like(truth.classes, dtype=torch.bool) if crowd is None else crowd.bool()
    areas = area(truth.boxes) if areas is None else areas
    columns = [x.detach().cpu() for x in (*found[:2], found.scores, *truth[:2], crowd, areas)]
    evidence = []
    for image in zip(*columns, strict=True):
        has, is_true = image[1] >= 0, image[4] >= 0
        evidence.append(DetectionEvidence(*(x[has] for x in image[:3]), *(x[is_true] for x in image[3:])))
    return evidence


@dataclass(frozen=True)
class FlatEvidence:
    """The evidence of all images, end to end, in float64."""

    images: int
    boxes: Tensor
    classes: Tensor
    scores: Tensor
    owner: Tensor
    """The image of everything found (n)."""
    true_boxes: Tensor
    true_classes: Tensor
    crowd: Tensor
    area: Tensor
    true_owner: Tensor
    """The image of every true object (m)."""


NOTHING = DetectionEvidence(*(torch.zeros(0, 4) if k in (0, 3) else torch.zeros(0) for k in range(7)))


def measure_lengths(evidence: Sequence[DetectionEvidence]) -> Tensor:
    """Found and true boxes of each image (images, 2); every one has a class, a score, .."""
    lengths = torch.tensor([[x.shape[0] for x in image] for image in evidence], dtype=torch.long).reshape(-1, 7)
    n, m = lengths[:, :1], lengths[:, 3:4]
    for rows, needs in (
        ((lengths[:, :3] != n).any(dim=1), "found boxes need as many classes and scores"),
        ((lengths[:, 3:] != m).any(dim=1), "true boxes need as many classes, crowd flags and areas"),
    ):
        if rows.any():
            number = int(rows.nonzero()[0])
            many = (n if needs.startswith("found") else m)[number]
            raise Mistake(f"image {number}: {int(many)} {needs}")
    return torch.cat([n, m], dim=1)


def lay_end_to_end(evidence: Sequence[DetectionEvidence], classes: int) -> FlatEvidence:
    """All images in one; a class that is none of 0 .. classes − 1 and lengths that do not fit are refused."""
    lengths = measure_lengths(evidence)
    columns = [torch.cat(column).double() for column in zip(NOTHING, *evidence, strict=True)]
    boxes, kinds, scores, true_boxes, true_kinds, crowd, areas = columns
    for name, column in (("found", kinds), ("true", true_kinds)):
        if len(column) and not 0 <= float(column.min()) <= float(column.max()) < classes:
            wrong = column[(column < 0) | (column >= classes)][0]
            raise Mistake(f"a {name} object has class {int(wrong)}, which is not one of 0 to {classes - 1}")
    images = torch.arange(len(evidence))
    return FlatEvidence(
        len(evidence), boxes, kinds.long(), scores, images.repeat_interleave(lengths[:, 0]),
        true_boxes, true_kinds.long(), crowd.bool(), areas, images.repeat_interleave(lengths[:, 1]),
    )  # fmt: skip
