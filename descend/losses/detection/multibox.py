"""The multibox loss of SSD: the class of every matched default box and of the hardest others, and the offsets.

    L = Σ_images n_i / M_i [ Σ_{matched} (−log p_y + λ Σ_4 smooth_l1(t − t*)) + Σ_{hard} −log p_0 ] / Σ_images n_i

Matched: IoU ≥ 0.5 with a true box, and the best default box of each true one. Hard: of the others the 3 M_i with the
largest loss, since nearly all of them are easy background. M_i counts the matched boxes of image i, n_i its objects,
both at least 1, so that an image without objects still learns from its three hardest boxes. The paper divides by all M
of a batch; here each image does by its own, and images weigh as their objects, so that a step may be split.

Systems: ssd
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from descend.contracts import Boxes, Loss, count_units
from descend.losses.classification import cross_entropy
from descend.losses.detection.region_proposals import overlap, take
from descend.losses.regression import smooth_l1
from descend.ops.detection.coding import RCNN, encode_offsets
from descend.ops.detection.distances import widen
from descend.ops.detection.matching import match_and_claim
from descend.ranges import NonNegative, Positive, Share


def find_hard(losses: Tensor, may: Tensor, count: Tensor) -> Tensor:
    """Of those that `may` be, the `count` (b, 1) with the largest losses (b, n), as a mask (b, n)."""
    order = torch.where(may, losses, -torch.inf).argsort(dim=1, descending=True, stable=True)
    return may & (order.argsort(dim=1) < count)


@dataclass(frozen=True)
class MultiBoxLoss:
    """Of found.logits (b, n, K + 1), found.offsets (b, n, 4) and found.anchors (n, 4)."""

    classes: NonNegative = 1.0
    """Weight of the cross-entropy."""
    box: NonNegative = 1.0
    """λ, weight of the offsets."""
    high: Share = 0.5
    """IoU from which a default box is matched."""
    negatives: NonNegative = 3.0
    """Hard boxes without an object for each matched one."""
    beta: Positive = 1.0
    """Of smooth L1."""
    chance: ClassVar[int] = 0

    def __call__(self, found: Any, truth: Boxes, u: Tensor) -> Loss:
        match = match_and_claim(overlap(found.anchors, truth), self.high, self.high)
        matched = match >= 0
        logits, t = widen(found.logits), widen(found.offsets)
        y = torch.where(matched, take(truth.classes, match).long() + 1, 0)
        named = cross_entropy(logits, y)
        count = matched.sum(dim=1, keepdim=True).clamp_min(1)
        hard = find_hard(named.detach(), ~matched, self.negatives * count)
        objects = (truth.classes >= 0).sum(dim=1, keepdim=True).clamp_min(1)
        weight = objects.to(logits) / count / count_units(truth)
        image, place = matched.nonzero(as_tuple=True)
        wanted = encode_offsets(take(truth.boxes.to(t), match)[image, place], found.anchors[place].to(t), RCNN)
        moved = smooth_l1(t[image, place], wanted, self.beta).sum(dim=-1)
        return Loss(
            {
                "classes": self.classes * (named * (matched | hard) * weight).sum(),
                "box": self.box * (moved * weight[image, 0]).sum(),
            }
        )
