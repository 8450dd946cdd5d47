"""Boxes without anchors: the distances from a point to the four sides, each as a distribution over bins.

    point (x, y) of stride s         the centre of a cell, ((j + ½) s, (i + ½) s)
    distances l, t, r, b             in strides: box = (x − l s, y − t s, x + r s, y + b s)
    distribution focal form          l = Σ_i i · softmax(z)_i,  i = 0 .. n − 1: an edge may be uncertain

A distance beyond n − 1 strides cannot be told.

Systems: yolo-v8
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def make_points(sides: Sequence[tuple[int, int]], strides: Sequence[int], like: Tensor) -> tuple[Tensor, Tensor]:
    """The centres of all cells, level by level and row by row (n, 2) in pixels, and the stride of each (n)."""
    points, steps = [], []
    for (height, width), stride in zip(sides, strides, strict=True):
        y = torch.arange(height, device=like.device, dtype=torch.float32) + 0.5
        x = torch.arange(width, device=like.device, dtype=torch.float32) + 0.5
        points.append(torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1).flatten(0, 1) * stride)
        steps.append(torch.full((height * width,), float(stride), device=like.device))
    return torch.cat(points), torch.cat(steps)


def distances_to_boxes(distances: Tensor, points: Tensor, strides: Tensor) -> Tensor:
    """l, t, r, b (.., n, 4) in strides -> x0, y0, x1, y1 (.., n, 4) in pixels."""
    pixels = distances * strides[:, None]
    return torch.cat([points - pixels[..., :2], points + pixels[..., 2:]], dim=-1)


def boxes_to_distances(boxes: Tensor, points: Tensor, strides: Tensor) -> Tensor:
    """The inverse; a distance is negative where the point lies outside."""
    pixels = torch.cat([points - boxes[..., :2], boxes[..., 2:] - points], dim=-1)
    return pixels / strides[:, None]


def expected_distance(logits: Tensor, bins: Tensor) -> Tensor:
    """Σ_i v_i softmax(z)_i: logits (.., n) and the values of the bins (n) -> (..)"""
    return logits.softmax(dim=-1) @ bins


def widen(x: Tensor) -> Tensor:
    """Half-precision numbers as float32, others as they are: sums over thousands of points need it."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
