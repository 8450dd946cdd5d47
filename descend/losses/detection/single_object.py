"""Losses of one object: its class, its box, its pixels, and their sum. One value an image.

    class       −log softmax(z)_y
    box         Σ_4 (b̂ − b)²            or Σ_4 smooth_l1(b̂ − b): large errors pull no harder than others
    pixels      mean over the pixels of −log softmax(z)_m
    L = class + λ box + μ pixels          λ = μ = 0: classification alone, μ = 0: localisation

Boxes are shares of the image. DLN leaves open which of the two the box has: both are functions here.

Systems: single-object-detector
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from descend.losses.classification import cross_entropy
from descend.losses.regression import smooth_l1, squared_error

BETA = 0.1
"""Of smooth L1: a tenth of the image."""

BoxLoss = Callable[[Tensor, Tensor], Tensor]
"""(boxes (b, 4), true boxes (b, 4)) -> (b)"""


def squared_box(box: Tensor, true: Tensor) -> Tensor:
    """Σ_4 (b̂ − b)²: (b, 4) -> (b)"""
    return squared_error(box, true).sum(dim=-1)


def smooth_box(box: Tensor, true: Tensor) -> Tensor:
    """Σ_4 smooth_l1(b̂ − b): (b, 4) -> (b)"""
    return smooth_l1(box, true, BETA).sum(dim=-1)


def classify_and_locate(found: Any, y: Tensor, true: Tensor, weight: float = 5.0, box: BoxLoss = smooth_box) -> Tensor:
    """class + λ box of what two heads found, logits and box: (b)"""
    return cross_entropy(found.logits, y) + weight * box(found.box, true)


def pixel_loss(logits: Tensor, mask: Tensor) -> Tensor:
    """The mean over an image's pixels: logits (b, N, h, w), classes (b, h, w) -> (b)"""
    return F.cross_entropy(logits, mask, reduction="none").mean(dim=(1, 2))


def see_all(found: Any, y: Tensor, true: Tensor, mask: Tensor, weights: tuple[float, float] = (5.0, 1.0)) -> Tensor:
    """class + λ box + μ pixels of what three heads found: (b)"""
    return classify_and_locate(found, y, true, weights[0]) + weights[1] * pixel_loss(found.pixels, mask)
