"""What a detector predicts of a box, relative to an anchor, and the way back.

    t_x = (cx − cx_a) / w_a,  t_y = (cy − cy_a) / h_a,  t_w = ln(w / w_a),  t_h = ln(h / h_a)
    cx = cx_a + t_x w_a,      cy = cy_a + t_y h_a,      w = w_a e^{t_w},    h = h_a e^{t_h}

Boxes and anchors are x0, y0, x1, y1. Weights multiply the offsets, so that their spreads are alike: R-CNN's are 10, 10,
5, 5 (SSD's variances 0.1, 0.1, 0.2, 0.2 are their inverses). `limit` bounds t_w and t_h before the exponential, which
nothing else bounds.

Systems: bounding-boxes
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.ops.boxes import TINY, to_centre, to_corners

EVEN = (1.0, 1.0, 1.0, 1.0)
RCNN = (10.0, 10.0, 5.0, 5.0)
LIMIT = math.log(1000 / 16)
"""Of R-CNN: from an anchor of 16 pixels to a box of 1000."""

Weights = tuple[float, float, float, float]


def encode_offsets(boxes: Tensor, anchors: Tensor, weights: Weights = EVEN) -> Tensor:
    """t (.., 4) of boxes (.., 4) at anchors (.., 4), which broadcast. Boxes without area have finite offsets."""
    box, anchor = to_centre(boxes), to_centre(anchors)
    size = anchor[..., 2:].clamp_min(TINY)
    shift = (box[..., :2] - anchor[..., :2]) / size
    scale = (box[..., 2:].clamp_min(TINY) / size).log()
    return torch.cat([shift, scale], dim=-1) * boxes.new_tensor(weights)


def decode_offsets(offsets: Tensor, anchors: Tensor, weights: Weights = EVEN, limit: float = math.inf) -> Tensor:
    """Boxes (.., 4) from offsets t (.., 4) at anchors (.., 4), which broadcast."""
    t, anchor = offsets / offsets.new_tensor(weights), to_centre(anchors)
    centre = anchor[..., :2] + t[..., :2] * anchor[..., 2:]
    size = anchor[..., 2:] * t[..., 2:].clamp_max(limit).exp()
    return to_corners(torch.cat([centre, size], dim=-1))
