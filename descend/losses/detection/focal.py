"""The loss of RetinaNet: the focal loss of every anchor and class, and the offsets of the matched ones.

    L = Σ_images n_i / M_i [ Σ_{anchors, classes} −α_t (1 − p_t)^γ log p_t + λ Σ_{matched} Σ_4 |t − t*| ] / Σ_images n_i

    p_t = σ(z) for the class of the anchor's object, 1 − σ(z) for all others;  α_t = α and 1 − α        γ = 2, α = ¼

Easy anchors, nearly all of them, count almost nothing, so that none need be sampled. Matched: IoU ≥ 0.5 with a true
box, or the best of one; below 0.4 background; between left out. MF has no α: α_t = 1 (`alpha` 0 leaves it out). M_i
counts the matched anchors of image i, n_i its objects, both at least 1, as in `multibox`.

Systems: focal-loss
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from descend.contracts import Boxes, Loss, count_units
from descend.losses.classification import focal_binary_cross_entropy
from descend.losses.detection.region_proposals import overlap, take
from descend.losses.regression import absolute_error
from descend.ops.detection.coding import encode_offsets
from descend.ops.detection.distances import widen
from descend.ops.detection.matching import LEFT_OUT, match_and_rescue
from descend.ranges import Fraction, NonNegative, Share


def image_weights(matched: Tensor, truth: Boxes, like: Tensor) -> Tensor:
    """n_i / M_i / Σ n (b, 1), of the matched places (b, n)."""
    objects = (truth.classes >= 0).sum(dim=1, keepdim=True).clamp_min(1)
    return objects.to(like) / matched.sum(dim=1, keepdim=True).clamp_min(1) / count_units(truth)


def focal_classes(logits: Tensor, match: Tensor, truth: Boxes, alpha: float, gamma: float) -> Tensor:
    """Σ over the classes of the focal loss at every place: logits (b, n, K), match (b, n) -> (b, n)"""
    y = torch.where(match >= 0, take(truth.classes, match).long(), -1)
    hot = (y[..., None] == torch.arange(logits.shape[-1], device=logits.device)).to(logits)
    weight = hot * alpha + (1 - hot) * (1 - alpha) if alpha else torch.ones_like(hot)
    return (weight * focal_binary_cross_entropy(logits, hot, gamma)).sum(dim=-1)


@dataclass(frozen=True)
class FocalBoxLoss:
    """Of found.logits (b, n, K), found.offsets (b, n, 4) and found.anchors (n, 4)."""

    classes: NonNegative = 1.0
    """Weight of the focal loss."""
    box: NonNegative = 1.0
    """λ, weight of the offsets."""
    alpha: Fraction = 0.25
    """Weight of the true class, 1 − α of the others; 0: no weights."""
    gamma: NonNegative = 2.0
    high: Share = 0.5
    """IoU from which an anchor has an object."""
    low: Share = 0.4
    """IoU below which it has none."""
    chance: ClassVar[int] = 0

    def __call__(self, found: Any, truth: Boxes, u: Tensor) -> Loss:
        match = match_and_rescue(overlap(found.anchors, truth), self.high, self.low)
        logits, t = widen(found.logits), widen(found.offsets)
        weight = image_weights(match >= 0, truth, logits)
        named = focal_classes(logits, match, truth, self.alpha, self.gamma) * (match != LEFT_OUT)
        image, place = (match >= 0).nonzero(as_tuple=True)
        wanted = encode_offsets(take(truth.boxes.to(t), match)[image, place], found.anchors[place].to(t))
        moved = absolute_error(t[image, place], wanted).sum(dim=-1)
        return Loss(
            {
                "classes": self.classes * (named * weight).sum(),
                "box": self.box * (moved * weight[image, 0]).sum(),
            }
        )
