"""IoU for boxes that do not touch: what is lost beyond the overlap has a gradient, too.

    GIoU = IoU − |C \\ (A ∪ B)| / |C|                C the smallest box around A and B; in (−1, 1]
    DIoU = IoU − ρ² / c²                            ρ the distance of the centres, c the diagonal of C; in (−1, 1]
    CIoU = IoU − ρ² / c² − α v                      v = 4/π² (atan(w*/h*) − atan(w/h))²,  α = v / ((1 − IoU) + v)

α is a weight and carries no gradient, as in its paper; `complete_iou_whole` differentiates through it, too. Boxes are
x0, y0, x1, y1. The books use GIoU and name the others without writing them out; these are the forms of the papers. The
first box of CIoU is the prediction, the second the truth (w*, h*); values are the same the other way round.

Systems: iou-losses
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.ops.boxes import TINY, area, intersection


def hull(a: Tensor, b: Tensor) -> Tensor:
    """C, the smallest box around both: (.., 4) and (.., 4), which broadcast -> (.., 4)"""
    return torch.cat([torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:])], dim=-1)


def parts(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """IoU and |A ∪ B| of boxes (.., 4), which broadcast."""
    both = intersection(a, b)
    union = (area(a) + area(b) - both).clamp_min(TINY)
    return both / union, union


def generalized_iou(a: Tensor, b: Tensor) -> Tensor:
    """GIoU of boxes (.., 4), which broadcast -> (..)"""
    iou, union = parts(a, b)
    around = area(hull(a, b)).clamp_min(TINY)
    return iou - (around - union) / around


def pairwise_generalized_iou(a: Tensor, b: Tensor) -> Tensor:
    """GIoU of every box of a (.., n, 4) with every box of b (.., m, 4) -> (.., n, m)"""
    return generalized_iou(a[..., :, None, :], b[..., None, :, :])


def centre_distance(a: Tensor, b: Tensor) -> Tensor:
    """ρ² / c² of boxes (.., 4), which broadcast -> (..); 0 for one centre, below 1 for any two boxes."""
    apart = (a[..., :2] + a[..., 2:] - b[..., :2] - b[..., 2:]) / 2
    around = hull(a, b)
    diagonal = (around[..., 2:] - around[..., :2]).square().sum(dim=-1)
    return apart.square().sum(dim=-1) / diagonal.clamp_min(TINY)


def distance_iou(a: Tensor, b: Tensor) -> Tensor:
    """DIoU of boxes (.., 4), which broadcast -> (..)"""
    return parts(a, b)[0] - centre_distance(a, b)


def slant(box: Tensor) -> Tensor:
    """atan(w / h), also of a box without height."""
    w, h = (box[..., 2:] - box[..., :2]).clamp_min(TINY).unbind(-1)
    return torch.atan2(w, h)


def shape_difference(a: Tensor, b: Tensor) -> Tensor:
    """v, from 0 for equal ratios of the sides to 1."""
    return 4 / math.pi**2 * (slant(b) - slant(a)).square()


def shape_weight(iou: Tensor, v: Tensor) -> Tensor:
    """α: the shape counts where the boxes overlap well."""
    return v / (1 - iou + v).clamp_min(TINY)


def complete_iou(a: Tensor, b: Tensor) -> Tensor:
    """CIoU of boxes (.., 4), which broadcast -> (..); no gradient through α."""
    iou, v = parts(a, b)[0], shape_difference(a, b)
    return iou - centre_distance(a, b) - shape_weight(iou, v).detach() * v


def complete_iou_whole(a: Tensor, b: Tensor) -> Tensor:
    """The same value, with the gradient through α as well."""
    iou, v = parts(a, b)[0], shape_difference(a, b)
    return iou - centre_distance(a, b) - shape_weight(iou, v) * v
