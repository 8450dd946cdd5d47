"""The loss of detectors with one box and one objectness for each point, by any rule that assigns objects to points.

    box          1 − IoU², or 1 − GIoU, 1 − DIoU, 1 − CIoU        of positives
    objectness   BCE of σ(o) against 1 for positives, 0 for all others
    class        Σ_k BCE of σ(c_k) against the IoU at the object's class, 0 elsewhere: scores tell how good a box is

`SimOta` is YOLOX's rule, `TaskAlignment` TOOD's and YOLOv8's, `CentreCell` the fixed one of the first versions: the
cell of the object's centre at the level that fits its size. Assigner and box loss are parts, so that one detector can
be set up as YOLOX, YOLOv7 or YOLOv9 are described. Sums are divided by the number of objects, where a rule chooses
many points for an object by their number first.

Systems: yolox-v7-v9
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Boxes, Loss, count_units
from descend.ops.boxes import box_iou
from descend.ops.detection.distances import widen
from descend.ops.detection.sim_ota import Points, assign_sim_ota
from descend.ops.detection.task_alignment import align_tasks
from descend.ops.iou import complete_iou, distance_iou, generalized_iou
from descend.ranges import Count, NonNegative, Positive


class PredictsPoints(Protocol):
    """What a model found at n points: see `models/yolo_x.py`."""

    @property
    def logits(self) -> Tensor: ...
    @property
    def objectness(self) -> Tensor: ...
    @property
    def boxes(self) -> Tensor: ...
    @property
    def points(self) -> Tensor: ...
    @property
    def strides(self) -> Tensor: ...


class Assigner(Protocol):
    """The object of each point, −1 for background (b, n)."""

    def __call__(self, found: Points, truth: Boxes) -> Tensor: ...


@dataclass(frozen=True)
class SimOta:
    """By cost, with as many points as an object has good boxes: `ops/detection/sim_ota.py`."""

    radius: Positive = 2.5
    """Strides from the centre within which a point is a candidate."""
    weight: NonNegative = 3.0
    """λ: how much the IoU counts beside the class."""
    most: Count = 10
    """Points of an object, at most."""

    def __call__(self, found: Points, truth: Boxes) -> Tensor:
        return assign_sim_ota(found, (truth.boxes, truth.classes), self.radius, self.weight, self.most)[0]


@dataclass(frozen=True)
class TaskAlignment:
    """By the score and the IoU of a point together: `ops/detection/task_alignment.py`."""

    k: Count = 10
    alpha: NonNegative = 1.0
    beta: NonNegative = 6.0

    def __call__(self, found: Points, truth: Boxes) -> Tensor:
        parts = found.scores, found.boxes, found.points
        return align_tasks(parts, (truth.boxes, truth.classes), self.k, self.alpha, self.beta).owner


@dataclass(frozen=True)
class CentreCell:
    """The cell of the centre, at the level whose cells are nearest to a `cells`-th of the object's size."""

    cells: Positive = 4.0

    def __call__(self, found: Points, truth: Boxes) -> Tensor:
        n = len(found.strides)
        if not truth.classes.shape[1]:
            return truth.classes.new_full((len(truth.classes), n), -1)
        size = (truth.boxes[..., 2:] - truth.boxes[..., :2]).clamp_min(1e-6).prod(dim=-1).sqrt()
        fit = (size[:, None] / self.cells / found.strides[:, None]).log().abs()  # (b, n, m)
        middle = (truth.boxes[..., :2] + truth.boxes[..., 2:]) / 2
        away = (found.points[:, None] - middle[:, None]).abs().amax(dim=-1) / found.strides[:, None]
        cost = fit + FIRST * (away - 0.5).clamp_min(0)  # a point away from the centre's cell is the last resort
        cost = cost.masked_fill((truth.classes < 0)[:, None], torch.inf)
        best = torch.zeros_like(cost, dtype=torch.bool).scatter(1, cost.argmin(dim=1, keepdim=True), True)
        price, owner = cost.masked_fill(~best, torch.inf).min(dim=2)
        return torch.where(price.isfinite(), owner, -1)


FIRST = 1e4
OVERLAPS = {
    "iou": lambda a, b: box_iou(a, b).square(),
    "giou": generalized_iou,
    "diou": distance_iou,
    "ciou": complete_iou,
}


@dataclass(frozen=True)
class PointLoss:
    """The weights are YOLOX's."""

    box: NonNegative = 5.0
    objectness: NonNegative = 1.0
    classes: NonNegative = 1.0
    overlap: Literal["iou", "giou", "diou", "ciou"] = "iou"
    """What 1 − .. is taken of; "iou": its square."""
    assign: Any = field(default_factory=SimOta)
    """SimOta, TaskAlignment or CentreCell."""
    chance: ClassVar[int] = 0

    def __call__(self, found: PredictsPoints, truth: Boxes, u: Tensor) -> Loss:
        logits, objectness, boxes = (widen(x) for x in (found.logits, found.objectness, found.boxes))
        scores = (logits.sigmoid() * objectness.sigmoid()[..., None]).detach()
        owners = self.assign(Points(scores, boxes.detach(), found.points, found.strides), truth)
        positive = owners >= 0
        image, point = positive.nonzero(as_tuple=True)
        owner = owners[image, point]
        true, kind = truth.boxes[image, owner], truth.classes[image, owner]
        objects = (truth.classes >= 0).sum(dim=1).clamp_min(1)
        weight = objects / positive.sum(dim=1).clamp_min(1) / count_units(truth)  # of a positive of each image
        agreement = OVERLAPS[self.overlap](boxes[image, point], true)
        wanted = F.one_hot(kind, logits.shape[-1]) * box_iou(boxes[image, point].detach(), true)[:, None]
        by_class = F.binary_cross_entropy_with_logits(logits[image, point], wanted, reduction="none").sum(dim=-1)
        by_point = F.binary_cross_entropy_with_logits(objectness, positive.to(objectness.dtype), reduction="none")
        return Loss(
            {
                "box": self.box * (weight[image] * (1 - agreement)).sum(),
                "objectness": self.objectness * (weight * by_point.sum(dim=1)).sum(),
                "class": self.classes * (weight[image] * by_class).sum(),
            },
            {"positives": positive.sum(dim=1).float().mean()},
        )
