"""The loss of YOLOv1: squared errors, with a weight for what is rare.

    coordinates   λ_coord Σ_{ij} 1^obj [(x − x̂)² + (y − ŷ)² + (√w − √ŵ)² + (√h − √ĥ)²]        λ_coord = 5
    objects       Σ_{ij} 1^obj (C − Ĉ)²                                                       C: its IoU with the object
    background    λ_noobj Σ_{ij} 1^noobj (0 − Ĉ)²                                             λ_noobj = ½
    class         Σ_i 1^obj_i Σ_k (p_k − p̂_k)²                                                once for a cell

Of the B boxes of a cell the one with the largest IoU is responsible for its object; all others, of this cell and of
cells without an object, learn that there is nothing. A cell holds one object (the first whose centre is in it) and
one class. x, y are shares of the cell, w, h of the image. The loss is 0 for a perfect prediction. With `sure` the
confidence of a responsible box is asked to be 1, as MF has it, instead of its IoU.

Systems: yolo-v1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Boxes, Loss, count_units
from descend.ops.boxes import box_iou
from descend.ops.detection.distances import widen
from descend.ranges import NonNegative, Share


class PredictsCells(Protocol):
    """What `models/yolo_v1.py` found: S × S cells of B boxes."""

    @property
    def centres(self) -> Tensor: ...
    @property
    def roots(self) -> Tensor: ...
    @property
    def confidence(self) -> Tensor: ...
    @property
    def classes(self) -> Tensor: ...
    @property
    def boxes(self) -> Tensor: ...
    @property
    def size(self) -> Tensor: ...


@dataclass(frozen=True)
class YoloV1Loss:
    """The weights are those of the paper."""

    box: NonNegative = 5.0
    """λ_coord"""
    background: NonNegative = 0.5
    """λ_noobj"""
    objects: NonNegative = 1.0
    classes: NonNegative = 1.0
    sure: Share = 0.0
    """What is asked of a responsible box's confidence: its IoU (0), 1 (1), or between."""
    chance: ClassVar[int] = 0

    def __call__(self, found: PredictsCells, truth: Boxes, u: Tensor) -> Loss:
        units = count_units(truth)
        height, width = found.confidence.shape[1:3]
        image, row, column, owner = find_cells(truth, found.size, height, width)
        true, kind = truth.boxes[image, owner], truth.classes[image, owner]
        boxes = widen(found.boxes[image, row, column])
        iou = box_iou(boxes.detach(), true[:, None])
        best = iou.argmax(dim=1)
        one = torch.arange(len(best), device=best.device), best
        centre, root = code_truth(true, found.size, height, width)
        errors = [widen(found.centres[image, row, column])[one] - centre]
        errors += [widen(found.roots[image, row, column])[one] - root]
        confidence = widen(found.confidence)
        wanted = (1 - self.sure) * iou[one] + self.sure
        responsible = torch.zeros_like(confidence, dtype=torch.bool)
        responsible[image, row, column, best] = True
        c = widen(found.classes[image, row, column])
        terms = {
            "box": self.box * sum((e.square().sum() for e in errors), confidence.new_zeros(())),
            "objects": self.objects * (confidence[image, row, column, best] - wanted).square().sum(),
            "background": self.background * confidence[~responsible].square().sum(),
            "class": self.classes * (c - F.one_hot(kind, c.shape[-1])).square().sum(),
        }
        return Loss({name: value / units for name, value in terms.items()})


def find_cells(truth: Boxes, size: Tensor, height: int, width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Image, row and column of each cell that holds the centre of an object, and the number of its first one."""
    b, m = truth.classes.shape
    middle = (truth.boxes[..., :2] + truth.boxes[..., 2:]) / 2
    cells = middle.new_tensor([width, height])
    column, row = (middle / size * cells).floor().long().minimum(cells.long() - 1).clamp_min(0).unbind(-1)
    number = torch.arange(m, device=row.device).expand(b, m)
    place = (row * width + column).masked_fill(truth.classes < 0, height * width)  # padding goes to a cell of its own
    first = number.new_full((b, height * width + 1), m).scatter_reduce(1, place, number, "amin")[:, :-1]
    image, cell = (first < m).nonzero(as_tuple=True)
    return image, cell // width, cell % width, first[image, cell]


def code_truth(boxes: Tensor, size: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """x, y within the cell and √w, √h of the image's sides: boxes (p, 4) in pixels -> (p, 2), (p, 2)"""
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2 / size * boxes.new_tensor([width, height])
    last = middle.new_tensor([width, height]) - 1
    return middle - middle.floor().minimum(last).clamp_min(0), ((boxes[:, 2:] - boxes[:, :2]) / size).sqrt()
