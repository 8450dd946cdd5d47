"""How well a box fits: intersection over union.

IoU(a, b) = |a ∩ b| / |a ∪ b|        boxes x0, y0, x1, y1; 1 for the same box, 0 for boxes that do not touch
"""

from __future__ import annotations

import torch
from torch import Tensor


def area(box: Tensor) -> Tensor:
    """Of boxes (.., 4); a box whose corners are the wrong way round has none."""
    return (box[..., 2:] - box[..., :2]).clamp_min(0).prod(dim=-1)


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    """IoU of each pair of boxes (.., 4) -> (..); two empty boxes have 0."""
    corners = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    both = area(torch.cat(corners, dim=-1))
    return both / (area(a) + area(b) - both).clamp_min(1e-12)
