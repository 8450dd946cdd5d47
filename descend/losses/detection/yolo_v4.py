"""The loss of YOLOv4 and v5: the box as a whole by its complete IoU, and several anchors for an object.

    box          1 − CIoU(b, b*)                        of positives
    objectness   −ln σ(o) of positives, −ln(1 − σ(o)) of the background
    class        −Σ_k [y_k ln σ(c_k) + (1 − y_k) ln(1 − σ(c_k))]

Every anchor of an object's cells whose shape has an IoU above τ with it is positive, and always the best one. CIoU
knows how far apart two boxes are and how their shapes differ (`ops/iou.py`), so it has a gradient where they do not
touch.
DIoU leaves the shape out: `YoloV4DistanceLoss`.

Systems: yolo-v4-v5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from descend.contracts import Boxes, Loss, count_units
from descend.losses.detection.grid_terms import find_background, find_positives
from descend.losses.detection.yolo_v3 import class_loss, objectness_loss
from descend.ops.detection.distances import widen
from descend.ops.detection.yolo_grid import GridFound
from descend.ops.iou import complete_iou, distance_iou
from descend.ranges import NonNegative, Share


@dataclass(frozen=True)
class YoloV4Loss:
    """1 − CIoU."""

    box: NonNegative = 5.0
    objectness: NonNegative = 1.0
    classes: NonNegative = 1.0
    ignore: Share = 0.7
    """A prediction that overlaps an object more than this, and is not responsible for it, learns nothing."""
    tau: Share = 0.213
    """Anchors whose shape IoU with an object is above this learn it."""
    chance: ClassVar[int] = 0

    def __call__(self, found: GridFound, truth: Boxes, u: Tensor) -> Loss:
        units = count_units(truth)
        positives, owners = find_positives(found, truth, self.tau)
        overlap = self.overlap(widen(positives.at(found.boxes)), positives.boxes)
        background = find_background(found, truth, owners, self.ignore)
        return Loss(
            {
                "box": self.box * (1 - overlap).sum() / units,
                "objectness": self.objectness * objectness_loss(found, owners >= 0, background) / units,
                "class": self.classes * class_loss(found, positives, truth) / units,
            }
        )

    def overlap(self, boxes: Tensor, true: Tensor) -> Tensor:
        """How well boxes agree (p, 4), (p, 4) -> (p)"""
        return complete_iou(boxes, true)


@dataclass(frozen=True)
class YoloV4DistanceLoss(YoloV4Loss):
    """1 − DIoU."""

    def overlap(self, boxes: Tensor, true: Tensor) -> Tensor:
        return distance_iou(boxes, true)
