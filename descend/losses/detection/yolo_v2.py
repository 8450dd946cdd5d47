"""The loss of YOLOv2: squared errors of box and objectness, cross-entropy of classes that exclude each other.

    box          (2 − w h) [(σ(t_x) − x)² + (σ(t_y) − y)² + (t_w − ln(w/p_w))² + (t_h − ln(h/p_h))²]    of positives
    objectness   λ_obj (σ(o) − IoU)² of positives, σ(o)² of the background: objectness learns how good the box is
    class        −ln softmax(c)_k of positives

x, y are the object's place within its cell; w h in the weight are shares of the image. Sums are divided by the number
of objects. The box is coded as in `ops/detection/yolo_grid.py`; the paper gives no loss, this is its released
network's, with the cross-entropy for the squared error of its class probabilities.

Systems: yolo-v2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Boxes, Loss, count_units
from descend.losses.detection.grid_terms import find_background, find_positives, weigh_small
from descend.ops.boxes import box_iou, to_centre
from descend.ops.detection.distances import widen
from descend.ops.detection.yolo_grid import GridFound, encode_cells
from descend.ranges import NonNegative, Share


@dataclass(frozen=True)
class YoloV2Loss:
    """The weights are those of the released network."""

    box: NonNegative = 1.0
    objects: NonNegative = 5.0
    background: NonNegative = 1.0
    classes: NonNegative = 1.0
    ignore: Share = 0.6
    """A prediction that overlaps an object more than this, and is not responsible for it, learns nothing."""
    chance: ClassVar[int] = 0

    def __call__(self, found: GridFound, truth: Boxes, u: Tensor) -> Loss:
        units = count_units(truth)
        positives, owners = find_positives(found, truth)
        target = encode_cells(to_centre(positives.boxes), positives.grid)
        t = widen(positives.at(found.t))
        errors = torch.cat([t[:, :2].sigmoid() - target[:, :2].sigmoid(), t[:, 2:] - target[:, 2:]], dim=1)
        box = (weigh_small(positives.boxes, found.grid)[:, None] * errors.square()).sum()
        o = widen(found.objectness).sigmoid()
        iou = box_iou(positives.at(found.boxes), positives.boxes).detach()
        hits, misses = (positives.at(o) - iou).square().sum(), o[find_background(found, truth, owners, self.ignore)]
        logits, y = widen(positives.at(found.logits)), truth.classes[positives.image, positives.owner]
        return Loss(
            {
                "box": self.box * box / units,
                "objects": self.objects * hits / units,
                "background": self.background * misses.square().sum() / units,
                "class": self.classes * F.cross_entropy(logits, y, reduction="sum") / units,
            }
        )
