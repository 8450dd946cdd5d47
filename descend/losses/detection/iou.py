"""Losses of boxes: 1 − IoU and its forms, one value for each pair of boxes, 0 where they are equal.

    L_IoU = 1 − IoU        L_GIoU = 1 − GIoU        L_DIoU = 1 − DIoU        L_CIoU = 1 − CIoU

1 − IoU has no gradient for boxes that do not touch; the others have one everywhere. The predicted boxes come first.
Boxes are x0, y0, x1, y1, in pixels or shares (both of one kind).

Systems: iou-losses
"""

from __future__ import annotations

from torch import Tensor

from descend.ops.boxes import box_iou
from descend.ops.iou import complete_iou, distance_iou, generalized_iou


def iou_loss(boxes: Tensor, truth: Tensor) -> Tensor:
    """1 − IoU of boxes (.., 4), which broadcast -> (..)"""
    return 1 - box_iou(boxes, truth)


def giou_loss(boxes: Tensor, truth: Tensor) -> Tensor:
    """1 − GIoU of boxes (.., 4), which broadcast -> (..), in [0, 2)"""
    return 1 - generalized_iou(boxes, truth)


def diou_loss(boxes: Tensor, truth: Tensor) -> Tensor:
    """1 − DIoU = 1 − IoU + ρ² / c² of boxes (.., 4), which broadcast -> (..), in [0, 2)"""
    return 1 - distance_iou(boxes, truth)


def ciou_loss(boxes: Tensor, truth: Tensor) -> Tensor:
    """1 − CIoU = 1 − IoU + ρ² / c² + α v of boxes (.., 4), which broadcast -> (..); no gradient through α."""
    return 1 - complete_iou(boxes, truth)
