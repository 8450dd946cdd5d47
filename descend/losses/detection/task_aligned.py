"""The loss of YOLOv8: class scores that tell how good a box is, complete IoU, and a distribution for every side.

    class    Σ_points Σ_k BCE(σ(z_k), y_k)              y_k = t̂ for the class of the point's object, else 0
    box      Σ_positive t̂ (1 − CIoU)
    sides    Σ_positive t̂ ¼ Σ_sides DFL                  DFL = −[(i + 1 − y) ln S_i + (y − i) ln S_{i+1}],  i = ⌊y⌋

y is a side's distance in strides, S = softmax(z); DFL is least where the mass lies on the two bins beside y and its
mean is y. Points are assigned by `ops/detection/task_alignment.py`. An image's sums are divided by its own Σ t̂, and
weigh by its number of objects: the mean over objects is the same however a batch is split.

Systems: yolo-v8
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Boxes, Loss, count_units
from descend.ops.detection.distances import boxes_to_distances, widen
from descend.ops.detection.task_alignment import Assigned, align_tasks
from descend.ops.iou import complete_iou
from descend.ranges import Count, NonNegative

SHORT = 0.01
"""A distance ends this much below the last bin, so that there is always a next one."""


class PredictsDistances(Protocol):
    """What a model found at n points: see `models/yolo_v8.py`."""

    @property
    def logits(self) -> Tensor: ...
    @property
    def sides(self) -> Tensor: ...
    @property
    def boxes(self) -> Tensor: ...
    @property
    def points(self) -> Tensor: ...
    @property
    def strides(self) -> Tensor: ...


@dataclass(frozen=True)
class TaskAligned:
    """The weights are those of the published runs."""

    box: NonNegative = 7.5
    classes: NonNegative = 0.5
    sides: NonNegative = 1.5
    k: Count = 10
    """Points that an object learns at, at most."""
    alpha: NonNegative = 0.5
    """How much the class score counts in choosing them."""
    beta: NonNegative = 6.0
    """How much the IoU counts."""
    chance: ClassVar[int] = 0

    def __call__(self, found: PredictsDistances, truth: Boxes, u: Tensor) -> Loss:
        logits, sides, boxes = (widen(part) for part in (found.logits, found.sides, found.boxes))
        known = logits.sigmoid(), boxes, found.points
        assigned = align_tasks(known, (truth.boxes, truth.classes), self.k, self.alpha, self.beta)
        units = count_units(truth)
        objects = (truth.classes >= 0).sum(dim=1).clamp_min(1)
        total = assigned.target.sum(dim=1)
        image, point = assigned.positive.nonzero(as_tuple=True)
        owner, weight = assigned.owner[image, point], assigned.target[image, point]
        weight = weight * (objects / total.clamp_min(1e-9))[image] / units
        true = truth.boxes[image, owner]
        overlap = complete_iou(boxes[image, point], true)
        reach = sides.shape[-1] - 1 - SHORT
        distance = boxes_to_distances(true, found.points[point], found.strides[point]).clamp(0, reach)
        side = distribution_focal(sides[image, point], distance).mean(dim=-1)
        by_class = class_losses(logits, assigned, truth).sum(dim=(1, 2))
        return Loss(
            {
                "class": self.classes * (by_class * objects / total.clamp_min(1)).sum() / units,
                "box": self.box * (weight * (1 - overlap)).sum(),
                "sides": self.sides * (weight * side).sum(),
            },
            {"positives": assigned.positive.sum(dim=1).float().mean(), "target": total.mean()},
        )


def class_losses(logits: Tensor, assigned: Assigned, truth: Boxes) -> Tensor:
    """BCE of every point and class (b, n, K), against t̂ at the class of the point's object."""
    target = torch.zeros_like(logits)
    image, point = assigned.positive.nonzero(as_tuple=True)
    owner = assigned.owner[image, point]
    target[image, point, truth.classes[image, owner]] = assigned.target[image, point].to(target.dtype)
    return F.binary_cross_entropy_with_logits(logits, target, reduction="none")


def distribution_focal(logits: Tensor, y: Tensor) -> Tensor:
    """DFL of logits (.., bins) and distances y (..) from 0 to below bins − 1 -> (..)"""
    log_s = logits.log_softmax(dim=-1)
    low = y.floor().long()
    left, right = (log_s.gather(-1, i[..., None]).squeeze(-1) for i in (low, low + 1))
    return -((low + 1 - y) * left + (y - low) * right)
