"""Outlines as signed distances: how far a point lies from the edge, below 0 inside.

    circle |p| − r        ring ||p| − m| − w        polygon, star: by symmetry one edge, n·p − c
    cross  the nearer of two bars                   several parts: min over parts (union)

Points are in units of the shape's radius, so every outline touches the unit circle. Outside a corner the distance to
the edge's line is smaller than that to the corner; the sign is always exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def circle(x: Tensor, y: Tensor) -> Tensor:
    return torch.hypot(x, y) - 1


def ring(x: Tensor, y: Tensor) -> Tensor:
    """From 0.45 to 1."""
    return (torch.hypot(x, y) - 0.725).abs() - 0.275


def star_of(points: int, notch: float) -> Callable[[Tensor, Tensor], Tensor]:
    """A star with tips at radius 1 and notches at radius `notch`; notch = cos(π/points) is the regular polygon."""
    half = math.pi / points
    tip, deep = (1.0, 0.0), (notch * math.cos(half), notch * math.sin(half))
    edge = math.hypot(tip[0] - deep[0], tip[1] - deep[1])
    nx, ny = deep[1] / edge, (tip[0] - deep[0]) / edge

    def outline(x: Tensor, y: Tensor) -> Tensor:
        r, angle = torch.hypot(x, y), torch.atan2(y, x)
        angle = (torch.remainder(angle + half, 2 * half) - half).abs()  # all edges are this one, turned or mirrored
        return nx * (r * angle.cos() - 1) + ny * r * angle.sin()

    return outline


def cross(x: Tensor, y: Tensor) -> Tensor:
    """Two bars, each of length 2·0.95 and width 2·0.312: the corners touch the unit circle."""
    x, y = x.abs(), y.abs()
    return torch.minimum(torch.maximum(x - 0.95, y - 0.312), torch.maximum(y - 0.95, x - 0.312))


OUTLINES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "circle": circle,
    "square": star_of(4, math.cos(math.pi / 4)),
    "triangle": star_of(3, math.cos(math.pi / 3)),
    "star": star_of(5, 0.45),
    "cross": cross,
    "ring": ring,
}
UPRIGHT = {"square": math.pi / 4, "triangle": -math.pi / 2, "star": -math.pi / 2}
"""How far an outline is turned to stand as people draw it; rows are counted downwards. Others stand so already."""
