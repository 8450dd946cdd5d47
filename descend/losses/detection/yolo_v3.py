"""The loss of YOLOv3: squared errors of the box's code, and a logistic answer to every question of yes or no.

    box          (2 − w h) [(σ(t_x) − x)² + (σ(t_y) − y)² + (t_w − ln(w/p_w))² + (t_h − ln(h/p_h))²]    of positives
    objectness   −ln σ(o) of positives, −ln(1 − σ(o)) of the background
    class        −Σ_k [y_k ln σ(c_k) + (1 − y_k) ln(1 − σ(c_k))] of positives: each class on its own

With independent classes an object may have several (woman and person), and the loss of a right answer tends to 0. A
softmax shares out one unit: with two targets of 1 its cross-entropy is at least 2 ln 2.

Systems: yolo-v3
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Boxes, Loss, count_units
from descend.losses.detection.grid_terms import Positives, find_background, find_positives, list_labels, weigh_small
from descend.ops.boxes import to_centre
from descend.ops.detection.distances import widen
from descend.ops.detection.yolo_grid import GridFound, encode_cells
from descend.ranges import NonNegative, Share


@dataclass(frozen=True)
class YoloV3Loss:
    """Every term counts alike, as published."""

    box: NonNegative = 1.0
    objectness: NonNegative = 1.0
    classes: NonNegative = 1.0
    ignore: Share = 0.5
    """A prediction that overlaps an object more than this, and is not responsible for it, learns nothing."""
    chance: ClassVar[int] = 0

    def __call__(self, found: GridFound, truth: Boxes, u: Tensor) -> Loss:
        units = count_units(truth)
        positives, owners = find_positives(found, truth)
        target = encode_cells(to_centre(positives.boxes), positives.grid)
        t = widen(positives.at(found.t))
        errors = torch.cat([t[:, :2].sigmoid() - target[:, :2].sigmoid(), t[:, 2:] - target[:, 2:]], dim=1)
        box = (weigh_small(positives.boxes, found.grid)[:, None] * errors.square()).sum()
        background = find_background(found, truth, owners, self.ignore)
        return Loss(
            {
                "box": self.box * box / units,
                "objectness": self.objectness * objectness_loss(found, owners >= 0, background) / units,
                "class": self.classes * class_loss(found, positives, truth) / units,
            }
        )


def objectness_loss(found: GridFound, positive: Tensor, background: Tensor) -> Tensor:
    """Σ of the logistic losses; predictions that are neither count nothing."""
    logits = widen(found.objectness)
    losses = F.binary_cross_entropy_with_logits(logits, positive.to(logits.dtype), reduction="none")
    return losses[positive | background].sum()


def class_loss(found: GridFound, positives: Positives, truth: Boxes) -> Tensor:
    """Σ over positives and classes of the logistic loss."""
    logits = widen(positives.at(found.logits))
    return independent_loss(logits, list_labels(positives, truth, logits.shape[1]).to(logits.dtype)).sum()


def independent_loss(logits: Tensor, y: Tensor) -> Tensor:
    """−Σ_k [y_k ln σ(z_k) + (1 − y_k) ln(1 − σ(z_k))]: (.., K) and targets in 0..1 -> (..)"""
    return F.binary_cross_entropy_with_logits(logits, y, reduction="none").sum(dim=-1)
