"""The loss of region detectors: which class is in this region, and how must the region move?

    L = Σ_images 1/S Σ_{r chosen} [ −log softmax(z_r)_{y_r}  +  λ [y_r ≥ 1] Σ_4 smooth_l1(t_{r, y_r} − t*_r) ] / N

Regions are the proposals of an image and its true boxes: IoU ≥ 0.5 with a true box has its class y = 1 .. K, all others
are background, 0. S of an image are chosen at random, at most a quarter of them objects. Offsets are those of the
region's own class, weighted by 10, 10, 5, 5. The model's second stage sees the chosen regions only: what forward found
has `refine(boxes, owner)`.

Fast R-CNN and R-CNN are trained by `RegionLoss` on proposals that are given; Faster R-CNN by `TwoStageLoss`, jointly
with its region proposal network. N = `count_units`; the random numbers come with the batch.

Systems: fast-r-cnn, faster-r-cnn, r-cnn
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from descend.contracts import Boxes, Loss, count_units
from descend.losses.classification import cross_entropy
from descend.losses.detection.region_proposals import RegionProposalLoss, overlap, take
from descend.losses.regression import smooth_l1
from descend.ops.detection.coding import RCNN, encode_offsets
from descend.ops.detection.distances import widen
from descend.ops.detection.matching import match_by_threshold
from descend.ops.detection.sampling import choose_balanced, draw_keys
from descend.ranges import Count, NonNegative, Positive, Share


@dataclass(frozen=True)
class RegionLoss:
    """Of found.proposals (b, p, 4), those that are found.real (b, p), and found.refine(boxes, owner)."""

    classes: NonNegative = 1.0
    """Weight of the cross-entropy."""
    box: NonNegative = 1.0
    """λ, weight of the offsets."""
    regions: Count = 128
    """S: chosen of an image."""
    share: Share = 0.25
    """Of objects among them, at most."""
    high: Share = 0.5
    """IoU from which a region has an object."""
    beta: Positive = 1 / 9
    """Of smooth L1."""
    chance: ClassVar[int] = 1

    def __call__(self, found: Any, truth: Boxes, u: Tensor) -> Loss:
        boxes = torch.cat([truth.boxes.to(found.proposals), found.proposals], dim=1)
        real = torch.cat([truth.classes >= 0, found.real], dim=1)
        match = match_by_threshold(overlap(boxes, truth), self.high, self.high)
        keys = draw_keys(u[:, 0], boxes.shape[1])
        objects, others = choose_balanced((match >= 0) & real, (match < 0) & real, keys, self.regions, self.share)
        chosen = objects | others
        image, place = chosen.nonzero(as_tuple=True)
        refined = found.refine(boxes[image, place], image)
        logits, t = widen(refined.logits), widen(refined.offsets)
        weight = (1 / (chosen.sum(dim=1).clamp_min(1) * count_units(truth)).to(logits))[image]
        y = torch.where(match >= 0, take(truth.classes, match).long() + 1, 0)[image, place]
        named = cross_entropy(logits, y)
        r = (y > 0).nonzero()[:, 0]
        at = (image[r], place[r])
        wanted = encode_offsets(take(truth.boxes.to(t), match)[at], boxes[at].to(t), RCNN)
        moved = smooth_l1(t[r, y[r]], wanted, self.beta).sum(dim=-1)
        return Loss(
            {
                "classes": self.classes * (named * weight).sum(),
                "box": self.box * (moved * weight[r]).sum(),
            }
        )


@dataclass(frozen=True)
class TwoStageLoss:
    """Both stages at once, of one forward."""

    proposals: RegionProposalLoss = field(default_factory=RegionProposalLoss)
    regions: RegionLoss = field(default_factory=RegionLoss)
    chance: ClassVar[int] = 2

    def __call__(self, found: Any, truth: Boxes, u: Tensor) -> Loss:
        first = self.proposals(found, truth, u[:, :1])
        return Loss(first.terms | self.regions(found, truth, u[:, 1:]).terms)
