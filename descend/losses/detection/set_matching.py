"""Which query predicts which object: the cost of each pair, and the assignment of least cost.

    π* = argmin_π Σ_i Cost(y_i, ŷ_π(i))           over all ways to give each object a query of its own

    original    Cost = w_c (−p_{i, c_j}) + w_1 ‖b_i − b_j‖₁ + w_g (−GIoU(b_i, b_j))               p = softmax(z)
    text        Cost = −P_correct + λ (1 − GIoU)           P_correct = p_c if c = c_j, else 1 − p_c, c = argmax p
    focal       Cost = w_c (α (1−p)^γ (−log p) − (1−α) p^γ (−log(1−p))) + the original's boxes        p = σ(z)

The text's P_correct asks what the query is surest of; the original asks how sure it is of the object's class. Boxes are
cx, cy, w, h in shares of the image for ‖·‖₁, and the same boxes by their corners for GIoU. Costs have no gradient.
Padding never gets a query, and of more objects than queries the costliest go without.

Systems: detr-losses
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.ops.boxes import to_centre, to_corners
from descend.ops.detection.hungarian import assign_all
from descend.ops.iou import pairwise_generalized_iou

LARGE = 1e9


class Pairs(NamedTuple):
    """The matched pairs of all layers and images, laid end to end (p)."""

    layer: Tensor
    image: Tensor
    query: Tensor
    object: Tensor


class Targets(NamedTuple):
    """True objects in the units of the queries' boxes."""

    boxes: Tensor
    """cx, cy, w, h in shares of the image (b, m, 4)."""
    classes: Tensor
    """(b, m), −1 for padding."""


def scale_truth(truth: Boxes, sides: Tensor) -> Targets:
    """Boxes in pixels -> shares of images with sides w, h, w, h."""
    return Targets(to_centre(truth.boxes / sides), truth.classes)


def softmax_class_cost(logits: Tensor, classes: Tensor) -> Tensor:
    """−p of the object's class: logits (.., b, n, K + 1), classes (b, m) -> (.., b, n, m)"""
    return -take_classes(logits.softmax(-1), classes)


def certain_class_cost(logits: Tensor, classes: Tensor) -> Tensor:
    """−P_correct, the text's: −p_c where the likeliest class c is the object's, −(1 − p_c) elsewhere."""
    p, c = logits.softmax(-1).max(-1, keepdim=True)
    return -torch.where(c == classes[:, None, :], p, 1 - p)


def focal_class_cost(logits: Tensor, classes: Tensor, alpha: float = 0.25, gamma: float = 2.0) -> Tensor:
    """What the focal loss would gain if the class were the object's, with p = σ(z): (.., b, n, K) -> (.., b, n, m)"""
    p = logits.sigmoid()
    hit, miss = alpha * (1 - p) ** gamma * -(p + 1e-8).log(), (1 - alpha) * p**gamma * -(1 - p + 1e-8).log()
    return take_classes(hit - miss, classes)


def take_classes(x: Tensor, classes: Tensor) -> Tensor:
    """x (.., b, n, k) at the classes (b, m) of the same image -> (.., b, n, m); padding reads class 0."""
    index = classes.clamp_min(0)[:, None, :].expand(*x.shape[:-1], classes.shape[1])
    return x.gather(-1, index)


def l1_cost(boxes: Tensor, targets: Tensor) -> Tensor:
    """‖b_i − b_j‖₁: boxes (.., b, n, 4), targets (b, m, 4) -> (.., b, n, m)"""
    return (boxes[..., :, None, :] - targets[..., None, :, :]).abs().sum(-1)


def giou_cost(boxes: Tensor, targets: Tensor) -> Tensor:
    """−GIoU of boxes cx, cy, w, h (.., b, n, 4) and (b, m, 4) -> (.., b, n, m)"""
    return -pairwise_generalized_iou(to_corners(boxes), to_corners(targets))


def match(cost: Tensor, classes: Tensor) -> Pairs:
    """The pairs of least total cost: cost (layers, b, n, m), classes (b, m) with −1 for padding. A cost that is no
    number is the last to be paid."""
    layers, b = cost.shape[:2]
    order = (classes < 0).long().argsort(dim=1, stable=True)  # real objects first, as the solver takes them
    table = cost.detach().nan_to_num(LARGE, LARGE, LARGE).gather(-1, order[:, None, :].expand_as(cost))
    queries = assign_all(table.flatten(0, 1), (classes >= 0).sum(1).repeat(layers)).unflatten(0, (layers, b))
    layer, image, place = (queries >= 0).nonzero(as_tuple=True)
    return Pairs(layer, image, queries[layer, image, place], order[image, place])
