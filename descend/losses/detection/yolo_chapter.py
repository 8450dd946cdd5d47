"""The loss of MF's chapter on YOLO (24.5): squared errors of everything.

    L = λ_box L_box + λ_obj L_obj + λ_cls L_cls                                        λ = 5, 1, 1 in the walkthrough
    L_box = 1/N_obj Σ 1^obj [(√b_w − √w*)² + (√b_h − √h*)²]                            sizes in pixels
    L_obj = 1/N_bg  Σ [1^obj (o − 1)² + λ_noobj 1^noobj o²]                            λ_noobj = ½
    L_cls = 1/N_obj Σ 1^obj Σ_k (c_k − c_k*)²                                          c* one-hot

1^obj marks the predictions of an object's cells whose box has an IoU above τ with it, and always the best one of them;
the book leaves τ open. It has no centre term: `centre` adds YOLOv1's, (b_x − x*)² + (b_y − y*)² in cells, which the
book's form lacks (0). Both parts of L_obj are divided by N_bg, as printed.

Errata: the walkthrough (28.1.4) prints L_box = 2.8 for a box of 26 × 29 and a truth of 80 × 80; it is 27.4532, and the
total 137.326, not 14.06. The claim that square roots give "equal weight to small and large boxes" holds loosely: at
equal relative error the loss grows like w instead of w².
N are those of an image, and images weigh by their objects, so that a batch may be split.

Systems: yolo-loss
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Boxes, Loss, count_units
from descend.ops.boxes import box_iou, to_centre
from descend.ops.detection.distances import widen
from descend.ops.detection.yolo_grid import GridFound
from descend.ranges import NonNegative, Share

LEAST = 1e-6
"""Pixels: the root's slope has no end at 0."""


def root_size_loss(size: Tensor, true: Tensor) -> Tensor:
    """(√b_w − √w*)² + (√b_h − √h*)² of sizes (.., 2) -> (..)"""
    return (size.clamp_min(LEAST).sqrt() - true.clamp_min(LEAST).sqrt()).square().sum(dim=-1)


def objectness_error(o: Tensor, positive: Tensor, weight: float = 0.5) -> Tensor:
    """(o − 1)² where there is an object, λ_noobj o² elsewhere (..)"""
    return torch.where(positive, (o - 1).square(), weight * o.square())


def class_error(c: Tensor, true: Tensor) -> Tensor:
    """Σ_k (c_k − c_k*)² (.., K) -> (..)"""
    return (c - true).square().sum(dim=-1)


@dataclass(frozen=True)
class YoloChapterLoss:
    """The weights are those of the walkthrough."""

    box: NonNegative = 5.0
    objectness: NonNegative = 1.0
    classes: NonNegative = 1.0
    background: NonNegative = 0.5
    """λ_noobj"""
    centre: NonNegative = 0.0
    """The weight of the centre's error, in cells; the chapter has none."""
    tau: Share = 0.5
    """IoU from which a prediction of an object's cell counts as its own."""
    chance: ClassVar[int] = 0

    def __call__(self, found: GridFound, truth: Boxes, u: Tensor) -> Loss:
        owners = find_owners(found, truth, self.tau)
        positive = owners >= 0
        image, place = positive.nonzero(as_tuple=True)
        owner = owners[image, place]
        box, true = (to_centre(b) for b in (widen(found.boxes)[image, place], truth.boxes[image, owner]))
        centre = (box[:, :2] - true[:, :2]) / found.strides[place, None]
        size = root_size_loss(box[:, 2:], true[:, 2:])
        c = widen(found.logits)[image, place].sigmoid()
        kind = class_error(c, F.one_hot(truth.classes[image, owner], c.shape[-1]).to(c.dtype))
        objects = (truth.classes >= 0).sum(dim=1).clamp_min(1) / count_units(truth)
        share = (objects / positive.sum(dim=1).clamp_min(1))[image]  # of an image, over its N_obj
        o = objectness_error(widen(found.objectness).sigmoid(), positive, self.background).sum(dim=1)
        return Loss(
            {
                "box": self.box * (share * size).sum(),
                "objectness": self.objectness * (objects * o / (~positive).sum(dim=1).clamp_min(1)).sum(),
                "class": self.classes * (share * kind).sum(),
            }
            | ({"centre": self.centre * (share * centre.square().sum(dim=-1)).sum()} if self.centre else {})
        )


@torch.no_grad()
def find_owners(found: GridFound, truth: Boxes, tau: float) -> Tensor:
    """The object of each prediction, −1 for none (b, n): boxes of its cells with an IoU above τ, and the best one."""
    classes = truth.classes
    if not classes.shape[1]:
        return classes.new_full(found.objectness.shape, -1)
    middle = (truth.boxes[..., :2] + truth.boxes[..., 2:]) / 2
    home = ((middle[:, None] / found.strides[:, None, None]).floor() == found.cells[:, None]).all(dim=-1)
    iou = box_iou(widen(found.boxes)[:, :, None], truth.boxes[:, None])
    iou = iou.masked_fill(~(home & (classes >= 0)[:, None]), -1)
    best = torch.zeros_like(home).scatter(1, iou.argmax(dim=1, keepdim=True), True) & (iou >= 0)
    own = iou.masked_fill(~(best | (iou > tau)), -1)
    most, owner = own.max(dim=2)
    return torch.where(most >= 0, owner, -1)
