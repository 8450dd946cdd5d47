"""Anchor boxes: boxes of k shapes around the centre of every cell of a map, which a detector shifts and scales.

    centres   ((j + ½) s, (i + ½) s)                     of cell [i, j] of a map with stride s
    shapes    area (base · scale)²,  h / w = ratio        w = base · scale / √ratio,  h = base · scale · √ratio

3 ratios {½, 1, 2} × 3 scales {1, 2^⅓, 2^⅔} give k = 9. The book leaves open whether the ratio is h / w or w / h: both
are here (`anchor_shapes`, `anchor_shapes_wide`); the set is the same for {½, 1, 2}, only its order differs. One ratio
after the other, and the scales of each. Anchors of a cell are neighbours: number (i · width + j) · k + shape.

Systems: anchor-boxes
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

RATIOS = (0.5, 1.0, 2.0)
SCALES = (1.0, 2 ** (1 / 3), 2 ** (2 / 3))


def make_grid(height: int, width: int, stride: float, device: torch.device | str | None = None) -> Tensor:
    """The centres x, y of all cells, row by row (height · width, 2), in pixels of the input."""
    x = (torch.arange(width, device=device) + 0.5) * stride
    y = (torch.arange(height, device=device) + 0.5) * stride
    return torch.stack([x.expand(height, width), y[:, None].expand(height, width)], dim=-1).reshape(-1, 2)


def anchor_shapes(base: float, ratios: Sequence[float] = RATIOS, scales: Sequence[float] = SCALES) -> Tensor:
    """w, h of each ratio h / w and scale (k, 2)."""
    root = torch.tensor(ratios, dtype=torch.float64).sqrt()[:, None]
    size = base * torch.tensor(scales, dtype=torch.float64)
    return torch.stack([size / root, size * root], dim=-1).reshape(-1, 2).float()


def anchor_shapes_wide(base: float, ratios: Sequence[float] = RATIOS, scales: Sequence[float] = SCALES) -> Tensor:
    """The same with each ratio as w / h."""
    return anchor_shapes(base, ratios, scales).flip(-1)


def place_anchors(points: Tensor, shapes: Tensor) -> Tensor:
    """Boxes x0, y0, x1, y1 of every shape (k, 2) around every point (n, 2) -> (n · k, 4)"""
    half = shapes.to(points) / 2
    return torch.cat([points[:, None] - half, points[:, None] + half], dim=-1).reshape(-1, 4)


def make_anchors(
    height: int,
    width: int,
    stride: float,
    base: float,
    ratios: Sequence[float] = RATIOS,
    scales: Sequence[float] = SCALES,
) -> Tensor:
    """Anchors of a whole map (height · width · k, 4); ratios are h / w."""
    return place_anchors(make_grid(height, width, stride), anchor_shapes(base, ratios, scales))
