"""Boxes: their formats, areas, and how well two of them agree.

    corners   x0, y0, x1, y1                         centre   cx, cy, w, h
    pixels    0 .. width, 0 .. height                shares   of the image's width and height, 0 .. 1
    cx = (x0 + x1) / 2,  w = x1 − x0        x0 = cx − w / 2,  x1 = cx + w / 2        and so for y

    IoU(A, B) = |A ∩ B| / |A ∪ B|,  |A ∪ B| = |A| + |B| − |A ∩ B|

A box with corners the wrong way round has no area. COCO's files have x0, y0, w, h (`to_corner_size`).

Systems: bounding-boxes, iou
"""

from __future__ import annotations

import torch
from torch import Tensor

TINY = 1e-12


def to_corners(box: Tensor) -> Tensor:
    """cx, cy, w, h -> x0, y0, x1, y1."""
    centre, half = box[..., :2], box[..., 2:] / 2
    return torch.cat([centre - half, centre + half], dim=-1)


def to_centre(box: Tensor) -> Tensor:
    """x0, y0, x1, y1 -> cx, cy, w, h."""
    low, high = box[..., :2], box[..., 2:]
    return torch.cat([(low + high) / 2, high - low], dim=-1)


def to_corner_size(box: Tensor) -> Tensor:
    """x0, y0, x1, y1 -> x0, y0, w, h."""
    return torch.cat([box[..., :2], box[..., 2:] - box[..., :2]], dim=-1)


def from_corner_size(box: Tensor) -> Tensor:
    """x0, y0, w, h -> x0, y0, x1, y1."""
    return torch.cat([box[..., :2], box[..., :2] + box[..., 2:]], dim=-1)


def to_shares(box: Tensor, width: float, height: float) -> Tensor:
    """Pixels -> shares of the image, in either format."""
    return box / box.new_tensor([width, height, width, height])


def to_pixels(box: Tensor, width: float, height: float) -> Tensor:
    """Shares of the image -> pixels, in either format."""
    return box * box.new_tensor([width, height, width, height])


def clip_boxes(box: Tensor, width: float, height: float) -> Tensor:
    """The part of boxes x0, y0, x1, y1 that lies within the image."""
    return torch.minimum(box.clamp_min(0), box.new_tensor([width, height, width, height]))


def area(box: Tensor) -> Tensor:
    """Of boxes x0, y0, x1, y1 (.., 4) -> (..)"""
    x0, y0, x1, y1 = box.unbind(-1)
    return (x1 - x0).clamp_min(0) * (y1 - y0).clamp_min(0)


def intersection(a: Tensor, b: Tensor) -> Tensor:
    """|A ∩ B| of boxes (.., 4), which broadcast -> (..)"""
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = a.unbind(-1), b.unbind(-1)
    across = torch.minimum(ax1, bx1) - torch.maximum(ax0, bx0)
    down = torch.minimum(ay1, by1) - torch.maximum(ay0, by0)
    return across.clamp_min(0) * down.clamp_min(0)


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    """IoU of boxes (.., 4), which broadcast -> (..); two empty boxes have 0."""
    both = intersection(a, b)
    return both / (area(a) + area(b) - both).clamp_min(TINY)


def pairwise_iou(a: Tensor, b: Tensor) -> Tensor:
    """IoU of every box of a (.., n, 4) with every box of b (.., m, 4) -> (.., n, m)"""
    return box_iou(a[..., :, None, :], b[..., None, :, :])
