"""The varifocal loss: a score that says how good its box is (Zhang et al. 2021, in MF 26.4.2 without α and γ).

    q > 0    VFL = −q (q log p + (1 − q) log(1 − p))         q: the IoU of the box with its object, at its class
    q = 0    VFL = −α p^γ log(1 − p)                         α = 0.75, γ = 2 as published

The first is q times the cross-entropy of p with q, so its minimum is at p = q: a high score needs a good box, and good
boxes weigh more. The second is a focal loss: the many easy negatives hardly count. In training the weight p^γ and q are
numbers without a gradient (`varifocal_logits`), as released; `varifocal` differentiates through all.

`VarifocalSetPrediction` is RT-DETR's loss: matched as Deformable DETR is, on the selected rows and on every layer, with
L1 and GIoU of the boxes; and on denoising queries, where the model can decode them and `groups` is not 0.

Systems: varifocal-loss, rt-detr
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from descend.contracts import Boxes, Loss
from descend.losses.detection.denoising import EACH, add_noise, pair_noisy
from descend.losses.detection.set_matching import Pairs, Targets, focal_class_cost, giou_cost, l1_cost
from descend.losses.detection.set_prediction import divide_sums, giou_sum, l1_sum, match_truth, take_pairs
from descend.ops.boxes import box_iou, to_corners
from descend.ops.detection.sets import SetFound
from descend.ranges import NonNegative, Share, Whole

NUMBERS = 32 * EACH
"""Random numbers of an image for each group of denoising queries: 16 objects, two queries each."""

SILENCE = -1e4
"""A logit whose loss as a negative is 0."""


def varifocal(p: Tensor, q: Tensor, alpha: float = 0.75, gamma: float = 2.0) -> Tensor:
    """VFL of probabilities p and targets q (..), of each element."""
    p = p.clamp(torch.finfo(p.dtype).tiny, 1 - torch.finfo(p.dtype).eps / 2)
    positive = -q * (q * p.log() + (1 - q) * (-p).log1p())
    return torch.where(q > 0, positive, -alpha * p**gamma * (-p).log1p())


def varifocal_logits(logits: Tensor, q: Tensor, hit: Tensor, alpha: float = 0.75, gamma: float = 2.0) -> Tensor:
    """The same of p = σ(z), with weights that have no gradient; `hit` is 1 where a query has an object of the class,
    even one that its box misses (q = 0): there the weight is 0."""
    weight = alpha * logits.detach().sigmoid() ** gamma * (1 - hit) + q
    return F.binary_cross_entropy_with_logits(logits, q, weight, reduction="none")


@dataclass(frozen=True)
class VarifocalSetPrediction:
    """RT-DETR's: varifocal scores, L1 and GIoU; the same again for denoising queries."""

    classes: NonNegative = 1.0
    l1: NonNegative = 5.0
    giou: NonNegative = 2.0
    alpha: Share = 0.75
    gamma: NonNegative = 2.0
    class_cost: NonNegative = 2.0
    l1_cost: NonNegative = 5.0
    giou_cost: NonNegative = 2.0
    groups: Whole = 0
    """Of denoising queries."""
    flip: Share = 0.25
    """Share of the denoising queries with another class."""
    move: NonNegative = 1.0
    """Scale of the noise of denoising boxes."""

    @property
    def chance(self) -> int:
        """Random numbers of an image."""
        return self.groups * NUMBERS

    def cost(self, found: SetFound, y: Targets) -> Tensor:
        """Of each query with each object (layers, b, n, m)."""
        boxes = self.l1_cost * l1_cost(found.boxes, y.boxes) + self.giou_cost * giou_cost(found.boxes, y.boxes)
        return boxes + self.class_cost * focal_class_cost(found.logits, y.classes)

    def sum_terms(self, found: SetFound, y: Targets, pairs: Pairs) -> dict[str, Tensor]:
        """Over all layers, images and queries."""
        ours, theirs = take_pairs(found, y, pairs)
        at = (pairs.layer, pairs.image, pairs.query, y.classes[pairs.image, pairs.object])
        q, hit = torch.zeros_like(found.logits), torch.zeros_like(found.logits)
        q[at] = box_iou(to_corners(ours.detach()), to_corners(theirs)).to(q.dtype)
        hit[at] = 1
        return {
            "class": self.classes * varifocal_logits(found.logits, q, hit, self.alpha, self.gamma).sum(),
            "l1": self.l1 * l1_sum(found, y, pairs),
            "giou": self.giou * giou_sum(found, y, pairs),
        }

    def __call__(self, found: SetFound, truth: Boxes, u: Tensor) -> Loss:
        y, pairs = match_truth(found, truth, self.cost)
        sums = self.sum_terms(found, y, pairs)
        if self.groups and found.denoise is not None and y.classes.shape[1]:
            noisy = add_noise(y, u, self.groups, found.logits.shape[-1], self.flip, self.move)
            logits, boxes = found.denoise(noisy.classes, noisy.boxes, noisy.seen)
            padding = (noisy.classes == found.logits.shape[-1])[None, ..., None]
            more = SetFound(logits.masked_fill(padding, SILENCE), boxes, found.sides)
            again = self.sum_terms(more, y, pair_noisy(noisy, y.classes.shape[1], len(logits)))
            sums |= {f"noisy {name}": value / self.groups for name, value in again.items()}
        return divide_sums(sums, truth)
