"""Which detection belongs to which track: the assignment of the least cost among the pairs that are possible.

    C_ij = −IoU(detection_i, track_j) + λ d(centre_i, centre_j)
    min Σ C_ij over pairs (i, j), every detection and every track in at most one of them

Of all assignments with the most pairs it is the one with the least cost. The book gives neither λ nor what makes a pair
possible (gating). Here the distance d is counted in diagonals of the track's box, so that λ needs no unit; a pair is
possible where d is at most `reach` diagonals, the IoU at least `overlap`, and the class the same.

Systems: multi-object-tracking
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.boxes import pairwise_iou
from descend.ops.detection.hungarian import assign


def centre_distance(a: Tensor, b: Tensor) -> Tensor:
    """Pixels between the centres of boxes a (n, 4) and b (m, 4) -> (n, m)"""
    return torch.cdist((a[:, :2] + a[:, 2:]) / 2, (b[:, :2] + b[:, 2:]) / 2)


def diagonal(box: Tensor) -> Tensor:
    """Pixels from corner to corner (.., 4) -> (..)"""
    return (box[..., 2:] - box[..., :2]).norm(dim=-1)


def association_cost(iou: Tensor, distance: Tensor, weight: float) -> Tensor:
    """C = −IoU + λ d"""
    return -iou + weight * distance


def possible_pairs(iou: Tensor, distance: Tensor, reach: float, overlap: float) -> Tensor:
    """The gate (n, m)."""
    return (distance <= reach) & (iou >= overlap)


def compare_boxes(boxes: Tensor, tracks: Tensor) -> tuple[Tensor, Tensor]:
    """IoU (n, m) of detections and tracks, and the distance of their centres in diagonals of the tracks."""
    unit = diagonal(tracks).clamp_min(torch.finfo(tracks.dtype).tiny)
    return pairwise_iou(boxes, tracks), centre_distance(boxes, tracks) / unit


def match(cost: Tensor, possible: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Rows and columns of the assignment (k), (k): the most possible pairs, of these the least cost."""
    n, m = cost.shape
    if possible is None:
        possible = torch.ones_like(cost, dtype=torch.bool)
    if not possible.any():
        nothing = torch.zeros(0, dtype=torch.long)
        return nothing, nothing
    c = torch.where(possible, cost, 0.0).double()
    low = c.min()
    prohibitive = (c.max() - low + 1) * (min(n, m) + 1)  # one such pair costs more than all others together
    rows, columns = assign(torch.where(possible, c - low, prohibitive))
    kept = possible[rows, columns]
    return rows[kept], columns[kept]
