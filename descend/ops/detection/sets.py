"""Sets of predictions: what a detector with object queries gives, and the objects in it.

    query i:  class logits z_i, box b_i = (cx, cy, w, h) in shares of the image
    softmax   p_i = softmax(z_i) over K classes and "no object", the last;  score = max_{k < K} p_ik      DETR, YOLOS
    sigmoid   p_ik = σ(z_ik), K classes; the best pairs (i, k) of all n · K                  Deformable DETR, RT-DETR

There is no non-maximum suppression: the loss matches each object with one query, so the others learn to keep silent.
At most n objects come out. MF (25.4.2) says that all 100 are typically kept; with its threshold of 0.5 they are not.
Boxes of the text's walk-through, [0.4, 0.4, 0.3, 0.3], are centre and size, though printed as XYXY: x1 < x0 otherwise.

Systems: detr, rt-detr
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from descend.ops.boxes import to_corners

Objects = tuple[Tensor, Tensor, Tensor]
"""Boxes x0, y0, x1, y1 in pixels (b, m, 4), classes (b, m) and scores (b, m); padding has class −1 and score 0."""


Denoise = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Classes (b, q) with K for padding, boxes (b, q, 4) in shares, and who may look at whom (b, q, q) -> logits (layers,
b, q, K) and boxes (layers, b, q, 4)."""


class SetFound(NamedTuple):
    """What every decoder layer predicts; the last one counts."""

    logits: Tensor
    """(layers, b, n, classes or classes + 1)"""
    boxes: Tensor
    """cx, cy, w, h in shares of the image (layers, b, n, 4)."""
    sides: Tensor
    """w, h, w, h of the model's input, in pixels (4)."""
    denoise: Denoise | None = None
    """Where more queries can be decoded beside these."""


def measure_sides(x: Tensor) -> Tensor:
    """w, h, w, h of images (b, c, h, w)."""
    height, width = x.shape[-2:]
    return torch.tensor([width, height, width, height], dtype=x.dtype, device=x.device)


def decode_softmax(found: SetFound, least: float, most: int) -> Objects:
    """One class for each query: its best but "no object"."""
    scores, classes = found.logits[-1].softmax(-1)[..., :-1].max(-1)
    return keep_scored(to_corners(found.boxes[-1]) * found.sides, classes, scores, least, most)


def decode_sigmoid(found: SetFound, least: float, most: int) -> Objects:
    """The best pairs of query and class: a query may give several objects."""
    p = found.logits[-1].sigmoid()
    scores, pairs = p.flatten(1).topk(min(most, p[0].numel()), dim=1)
    boxes = to_corners(found.boxes[-1]) * found.sides
    boxes = boxes.gather(1, (pairs // p.shape[-1])[..., None].expand(-1, -1, 4))
    return keep_scored(boxes, pairs % p.shape[-1], scores, least, most)


def keep_scored(boxes: Tensor, classes: Tensor, scores: Tensor, least: float, most: int) -> Objects:
    """The `most` best of each image (b, n), best first; those below `least` become padding."""
    scores, order = scores.topk(min(most, scores.shape[1]), dim=1)
    boxes = boxes.gather(1, order[..., None].expand(-1, -1, 4))
    kept = scores >= least
    return boxes, classes.gather(1, order).where(kept, -1), scores.where(kept, 0)
