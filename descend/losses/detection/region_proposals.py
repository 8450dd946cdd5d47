"""The loss of a region proposal network: is there an object at this anchor, and how must the anchor move?

    L = Σ_images 1/S Σ_{i chosen} [ BCE(o_i, 1 if object else 0)  +  λ [i object] Σ_4 smooth_l1(t_i − t*_i) ] / N

Anchors: IoU ≥ 0.7 with a true box, or the best of one, are objects; below 0.3 with all, background; the others are left
out. S = 256 of an image are chosen at random, at most half of them objects. t* are the offsets of the matched box.
N = `count_units`, the same for all terms, so that a step may be split; the random numbers come with the batch. The
targets, the choice and the coding are fill-ins (the books do not print them): those of the original.

Systems: region-proposal-network
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Boxes, Loss, count_units
from descend.losses.regression import smooth_l1
from descend.ops.boxes import pairwise_iou
from descend.ops.detection.coding import encode_offsets
from descend.ops.detection.distances import widen
from descend.ops.detection.matching import BACKGROUND, match_and_rescue
from descend.ops.detection.sampling import choose_balanced, draw_keys
from descend.ranges import Count, NonNegative, Positive, Share


def overlap(boxes: Tensor, truth: Boxes) -> Tensor:
    """IoU of boxes (n, 4) or (b, n, 4) with the true ones (b, n, m); 0 with what pads."""
    boxes = boxes.expand(len(truth.boxes), -1, -1)
    return pairwise_iou(boxes, truth.boxes.to(boxes)) * (truth.classes >= 0)[:, None, :]


def take(values: Tensor, match: Tensor) -> Tensor:
    """The value of each anchor's box: (b, m, ..), (b, n) -> (b, n, ..); that of box 0 where there is none."""
    if values.shape[1] == 0:
        return values.new_zeros(*match.shape, *values.shape[2:])
    image = torch.arange(len(values), device=values.device)[:, None]
    return values[image, match.clamp_min(0)]


@dataclass(frozen=True)
class RegionProposalLoss:
    """Of found.objectness (b, n), found.offsets (b, n, 4) and found.anchors (n, 4)."""

    objectness: NonNegative = 1.0
    """Weight of the cross-entropy."""
    box: NonNegative = 1.0
    """λ, weight of the offsets."""
    anchors: Count = 256
    """S: chosen of an image."""
    share: Share = 0.5
    """Of objects among them, at most."""
    high: Share = 0.7
    """IoU from which an anchor has an object."""
    low: Share = 0.3
    """IoU below which it has none."""
    beta: Positive = 1 / 9
    """Of smooth L1."""
    chance: ClassVar[int] = 1

    def __call__(self, found: Any, truth: Boxes, u: Tensor) -> Loss:
        match = match_and_rescue(overlap(found.anchors, truth), self.high, self.low)
        keys = draw_keys(u[:, 0], len(found.anchors))
        objects, others = choose_balanced(match >= 0, match == BACKGROUND, keys, self.anchors, self.share)
        chosen = objects | others
        logits, t = widen(found.objectness), widen(found.offsets)
        weight = 1 / (chosen.sum(dim=1, keepdim=True).clamp_min(1) * count_units(truth)).to(logits)
        named = F.binary_cross_entropy_with_logits(logits, objects.to(logits), reduction="none")
        image, place = objects.nonzero(as_tuple=True)
        wanted = encode_offsets(take(truth.boxes.to(t), match)[image, place], found.anchors[place].to(t))
        moved = smooth_l1(t[image, place], wanted, self.beta).sum(dim=-1)
        return Loss(
            {
                "objectness": self.objectness * (named * chosen * weight).sum(),
                "proposal_box": self.box * (moved * weight[image, 0]).sum(),
            }
        )
