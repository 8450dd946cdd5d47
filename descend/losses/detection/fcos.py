"""The loss of FCOS: the focal loss of every point and class, GIoU of the boxes, and how central a point is.

    L = Σ_images n_i / M_i [ Σ focal + Σ_{matched} (1 − GIoU(box, box*)) + Σ_{matched} BCE(c, c*) ] / Σ_images n_i

    c* = √( min(l, r) / max(l, r) · min(t, b) / max(t, b) )        l, t, r, b: distances to the sides of the true box

A point learns a box if it lies in it, no more than 1.5 strides from its middle along each axis, and the box is of its
level's size: max(l, t, r, b) between 4 and 8 strides; the finest level has no lower, the coarsest no upper bound. Of
several boxes it learns the smallest. M_i counts the matched points of image i, n_i its objects, both at least 1.

Systems: feature-pyramid-network
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Boxes, Loss
from descend.losses.detection.focal import focal_classes, image_weights
from descend.losses.detection.region_proposals import take
from descend.ops.boxes import area
from descend.ops.detection.distances import boxes_to_distances, distances_to_boxes, widen
from descend.ops.iou import generalized_iou
from descend.ranges import Fraction, NonNegative, Positive


def match_points(points: Tensor, strides: Tensor, truth: Boxes, radius: float, reach: float) -> Tensor:
    """The number of each point's box, or −1: points (n, 2) -> (b, n)"""
    boxes = truth.boxes.to(points)
    if boxes.shape[1] == 0:
        return torch.full((len(boxes), len(points)), -1, device=points.device)
    distances = boxes_to_distances(boxes[:, None], points[None, :, None], strides[:, None])  # (b, n, m, 4)
    near = (distances[..., :2] - distances[..., 2:]).abs().amax(dim=-1) < 2 * radius  # l − r: twice from the middle
    low = torch.where(strides == strides.amin(), 0.0, reach / 2)[:, None]
    high = torch.where(strides == strides.amax(), torch.inf, reach)[:, None]
    far = distances.amax(dim=-1)
    may = near & (distances.amin(dim=-1) > 0) & (far > low) & (far < high) & (truth.classes >= 0)[:, None]
    smallest, box = torch.where(may, area(boxes)[:, None], torch.inf).min(dim=-1)
    return torch.where(smallest < torch.inf, box, -1)


def centreness(distances: Tensor) -> Tensor:
    """c* of distances l, t, r, b (.., 4), all positive -> (..)"""
    pairs = distances.unflatten(-1, (2, 2))  # (l, t), (r, b)
    return (pairs.amin(dim=-2) / pairs.amax(dim=-2)).prod(dim=-1).sqrt()


@dataclass(frozen=True)
class FCOSLoss:
    """Of found.logits (b, n, K), found.distances (b, n, 4), found.centreness (b, n), found.points (n, 2) and
    found.strides (n)."""

    classes: NonNegative = 1.0
    """Weight of the focal loss."""
    box: NonNegative = 1.0
    """Weight of 1 − GIoU."""
    centre: NonNegative = 1.0
    """Weight of the centreness."""
    alpha: Fraction = 0.25
    """Weight of the true class, 1 − α of the others; 0: no weights."""
    gamma: NonNegative = 2.0
    radius: Positive = 1.5
    """Strides from the middle of a box to a point that learns it, at most."""
    reach: Positive = 8.0
    """Strides from a point to the farthest side of its box, at most; half of them at least."""
    chance: ClassVar[int] = 0

    def __call__(self, found: Any, truth: Boxes, u: Tensor) -> Loss:
        match = match_points(found.points, found.strides, truth, self.radius, self.reach)
        logits, d, c = (widen(x) for x in (found.logits, found.distances, found.centreness))
        weight = image_weights(match >= 0, truth, logits)
        named = focal_classes(logits, match, truth, self.alpha, self.gamma)
        image, place = (match >= 0).nonzero(as_tuple=True)
        boxes, at = (
            take(truth.boxes.to(d), match)[image, place],
            (found.points[place].to(d), found.strides[place].to(d)),
        )
        moved = 1 - generalized_iou(distances_to_boxes(d[image, place], *at), boxes)
        central = centreness(boxes_to_distances(boxes, *at))
        told = F.binary_cross_entropy_with_logits(c[image, place], central, reduction="none")
        return Loss(
            {
                "classes": self.classes * (named * weight).sum(),
                "box": self.box * (moved * weight[image, 0]).sum(),
                "centre": self.centre * (told * weight[image, 0]).sum(),
            }
        )
