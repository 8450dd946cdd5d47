"""The loss of a set of predictions: match each object with one query, then compare the pairs.

    original    L = Σ w_i (−log p_i,c(i)) + 5 Σ ‖b − b̂‖₁ + 2 Σ (1 − GIoU)     w = 1, and 0.1 where c(i) is "no object"
    text        L = 5 Σ (1 − GIoU) + 2 Σ −(1 − p_c)^γ log p_c                   MF 28.2.7: 5 · 0.2 + 2 · 0.0089 = 1.0179
    sigmoid     L = 2 Σ focal(z) + 5 Σ ‖b − b̂‖₁ + 2 Σ (1 − GIoU)               Conditional and Deformable DETR

The sums go over the queries (class) and over the pairs (boxes) of all images, and over all decoder layers, each matched
for itself (auxiliary losses). Each is divided by the objects of the batch (`count_units`), so that splitting a step
changes nothing. Released code divides the original's class term by Σ w_i instead, whose balance therefore shifts with
the number of objects; here the class weight is a plain number. The order of the objects makes no difference.

Systems: detr-losses
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from descend.contracts import Boxes, Loss, count_units
from descend.losses.classification import focal_cross_entropy
from descend.losses.detection.set_matching import (
    Pairs,
    Targets,
    certain_class_cost,
    focal_class_cost,
    giou_cost,
    l1_cost,
    match,
    scale_truth,
    softmax_class_cost,
)
from descend.ops.boxes import to_corners
from descend.ops.detection.sets import SetFound
from descend.ops.iou import generalized_iou
from descend.ranges import NonNegative, Share


@dataclass(frozen=True)
class SetPrediction:
    """The original DETR's: cross-entropy with "no object", L1 and GIoU."""

    chance: ClassVar[int] = 0
    classes: NonNegative = 1.0
    l1: NonNegative = 5.0
    giou: NonNegative = 2.0
    no_object: Share = 0.1
    """Weight of a query without an object."""
    class_cost: NonNegative = 1.0
    l1_cost: NonNegative = 5.0
    giou_cost: NonNegative = 2.0

    def cost(self, found: SetFound, y: Targets) -> Tensor:
        """Of each query with each object (layers, b, n, m)."""
        boxes = self.l1_cost * l1_cost(found.boxes, y.boxes) + self.giou_cost * giou_cost(found.boxes, y.boxes)
        return boxes + self.class_cost * softmax_class_cost(found.logits, y.classes)

    def __call__(self, found: SetFound, truth: Boxes, u: Tensor) -> Loss:
        y, pairs = match_truth(found, truth, self.cost)
        labels = label_queries(found.logits, y, pairs)
        weight = torch.ones(found.logits.shape[-1], dtype=found.logits.dtype, device=found.logits.device)
        weight[-1] = self.no_object
        sums = {
            "class": self.classes
            * F.cross_entropy(found.logits.flatten(0, 2), labels.flatten(), weight, reduction="sum"),
            "l1": self.l1 * l1_sum(found, y, pairs),
            "giou": self.giou * giou_sum(found, y, pairs),
        }
        return divide_sums(sums, truth)


@dataclass(frozen=True)
class CertainSetPrediction:
    """The text's: GIoU and the focal loss, matched by P_correct; L1 may be added to the cost."""

    chance: ClassVar[int] = 0
    boxes: NonNegative = 5.0
    classes: NonNegative = 2.0
    gamma: NonNegative = 2.0
    box_cost: NonNegative = 5.0
    """λ"""
    l1_cost: NonNegative = 0.0

    def cost(self, found: SetFound, y: Targets) -> Tensor:
        """−P_correct + λ (1 − GIoU), and L1 if it counts (layers, b, n, m)."""
        cost = certain_class_cost(found.logits, y.classes) + self.box_cost * (1 + giou_cost(found.boxes, y.boxes))
        return cost + self.l1_cost * l1_cost(found.boxes, y.boxes) if self.l1_cost else cost

    def __call__(self, found: SetFound, truth: Boxes, u: Tensor) -> Loss:
        y, pairs = match_truth(found, truth, self.cost)
        labels = label_queries(found.logits, y, pairs)
        sums = {
            "class": self.classes * focal_cross_entropy(found.logits, labels, self.gamma).sum(),
            "giou": self.boxes * giou_sum(found, y, pairs),
        }
        return divide_sums(sums, truth)


@dataclass(frozen=True)
class FocalSetPrediction:
    """For heads without "no object": a focal loss of every class of every query, L1 and GIoU."""

    chance: ClassVar[int] = 0
    classes: NonNegative = 2.0
    l1: NonNegative = 5.0
    giou: NonNegative = 2.0
    alpha: Share = 0.25
    gamma: NonNegative = 2.0
    class_cost: NonNegative = 2.0
    l1_cost: NonNegative = 5.0
    giou_cost: NonNegative = 2.0

    def cost(self, found: SetFound, y: Targets) -> Tensor:
        """Of each query with each object (layers, b, n, m)."""
        boxes = self.l1_cost * l1_cost(found.boxes, y.boxes) + self.giou_cost * giou_cost(found.boxes, y.boxes)
        return boxes + self.class_cost * focal_class_cost(found.logits, y.classes, self.alpha, self.gamma)

    def __call__(self, found: SetFound, truth: Boxes, u: Tensor) -> Loss:
        y, pairs = match_truth(found, truth, self.cost)
        hits = mark_classes(found.logits, y, pairs)
        sums = {
            "class": self.classes * sigmoid_focal(found.logits, hits, self.alpha, self.gamma).sum(),
            "l1": self.l1 * l1_sum(found, y, pairs),
            "giou": self.giou * giou_sum(found, y, pairs),
        }
        return divide_sums(sums, truth)


def match_truth(found: SetFound, truth: Boxes, cost: Callable[[SetFound, Targets], Tensor]) -> tuple[Targets, Pairs]:
    """The true objects in shares of the image, and the pairs of least cost."""
    y = scale_truth(truth, found.sides)
    with torch.no_grad():
        return y, match(cost(found, y), y.classes)


def label_queries(logits: Tensor, y: Targets, pairs: Pairs) -> Tensor:
    """The class that each query should say (layers, b, n): the last, "no object", unless it is matched."""
    labels = torch.full(logits.shape[:-1], logits.shape[-1] - 1, device=logits.device)
    labels[pairs.layer, pairs.image, pairs.query] = y.classes[pairs.image, pairs.object]
    return labels


def mark_classes(logits: Tensor, y: Targets, pairs: Pairs) -> Tensor:
    """1 at the class of the object that a query is matched with, 0 elsewhere (layers, b, n, K)."""
    hits = torch.zeros_like(logits)
    hits[pairs.layer, pairs.image, pairs.query, y.classes[pairs.image, pairs.object]] = 1
    return hits


def sigmoid_focal(logits: Tensor, hits: Tensor, alpha: float, gamma: float) -> Tensor:
    """−α (1−p)^γ log p where hit, −(1−α) p^γ log(1−p) elsewhere, of each element."""
    p, ce = logits.sigmoid(), F.binary_cross_entropy_with_logits(logits, hits, reduction="none")
    wrong, weight = p + hits - 2 * p * hits, alpha * hits + (1 - alpha) * (1 - hits)
    return weight * wrong**gamma * ce


def take_pairs(found: SetFound, y: Targets, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """The boxes of matched queries, and of their objects (p, 4)."""
    return found.boxes[pairs.layer, pairs.image, pairs.query], y.boxes[pairs.image, pairs.object]


def l1_sum(found: SetFound, y: Targets, pairs: Pairs) -> Tensor:
    """Σ ‖b − b̂‖₁"""
    ours, theirs = take_pairs(found, y, pairs)
    return (ours - theirs).abs().sum()


def giou_sum(found: SetFound, y: Targets, pairs: Pairs) -> Tensor:
    """Σ (1 − GIoU)"""
    ours, theirs = take_pairs(found, y, pairs)
    return (1 - generalized_iou(to_corners(ours), to_corners(theirs))).sum()


def divide_sums(sums: dict[str, Tensor], truth: Boxes) -> Loss:
    """Sums over a batch -> the terms of its loss."""
    return Loss({name: value / count_units(truth) for name, value in sums.items()})
