"""Losses on distances between embeddings: like things near, unlike things a margin apart. One value for each example.

    pairs      x = ‖x₁ − x₂‖ (L1 or L2)         y = 1: x           y = −1: max(0, m − x)           hinge embedding
    angles     cos = x₁·x₂ / (‖x₁‖ ‖x₂‖)        y = 1: 1 − cos     y = −1: max(0, cos − m)         m in [−1, 1]
    triplets   max(0, d(a, p) − d(a, n) + m)    anchor, positive, negative; 0 once d(a, n) ≥ d(a, p) + m

A triplet may be an image, its caption and a wrong caption (DLN on CLIP). With another distance d a triplet is a
ranking: `margin.margin_ranking(d(a, n), d(a, p), 1, m)`. 1 − cos is half the SQUARED Euclidean distance of the unit
vectors; DLN's "normalized Euclidean distance" is monotone in it, not equal. Distances have no 1e-6 added, as torch's
have; the gradient of ‖0‖ is taken as 0.

Systems: hinge-embedding-loss, cosine-embedding-loss, triplet-margin-loss
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.losses.checks import not_negative, same_shape, signs


def distance(x1: Tensor, x2: Tensor, order: float = 2) -> Tensor:
    """‖x₁ − x₂‖ of each pair: order 2 is Euclidean, 1 the sum of absolute differences; (.., d) -> (..)."""
    same_shape(x1, x2, "first and second embeddings")
    return torch.linalg.vector_norm(x1 - x2, ord=order, dim=-1)


def cosine(x1: Tensor, x2: Tensor) -> Tensor:
    """x₁·x₂ / (‖x₁‖ ‖x₂‖) of each pair, 0 where one of them is 0: (.., d) -> (..)."""
    same_shape(x1, x2, "first and second embeddings")
    norms = torch.linalg.vector_norm(x1, dim=-1) * torch.linalg.vector_norm(x2, dim=-1)
    return (x1 * x2).sum(-1) / norms.masked_fill(norms == 0, 1.0)


def hinge_embedding(x: Tensor, y: Tensor, margin: float = 1.0) -> Tensor:
    """x where y = 1, max(0, m − x) where y = −1; x is a distance."""
    same_shape(x, y, "distances and labels")
    signs(y)
    not_negative(x, "distance")
    return torch.where(y == 1, x, (margin - x).relu())


def cosine_embedding(x1: Tensor, x2: Tensor, y: Tensor, margin: float = 0.0) -> Tensor:
    """1 − cos where y = 1, max(0, cos − m) where y = −1: (.., d), (.., d), (..) -> (..)."""
    if not -1 <= margin <= 1:
        raise Mistake(f"margin {margin}: a cosine lies between -1 and 1, so its margin does")
    cos = cosine(x1, x2)
    same_shape(cos, y, "pairs and labels")
    signs(y)
    return torch.where(y == 1, 1 - cos, (cos - margin).relu())


def triplet_margin(a: Tensor, p: Tensor, n: Tensor, margin: float = 1.0) -> Tensor:
    """max(0, ‖a − p‖ − ‖a − n‖ + m): (.., d) three times -> (..)."""
    return (distance(a, p) - distance(a, n) + margin).relu()
