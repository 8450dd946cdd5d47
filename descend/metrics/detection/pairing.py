"""Which found box speaks of which true one, for looking at mistakes: pairs of the highest IoU first, each box once.

First those of the same class, then, of what is left, those of another. Scores of a set pair otherwise, by the order of
the scores (`matching.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.metrics.detection.evidence import FlatEvidence
from descend.ops.boxes import box_iou


class BoxPairs(NamedTuple):
    """Found and true boxes of the same image that overlap."""

    found: Tensor
    truth: Tensor
    iou: Tensor

    def pick(self, mask: Tensor) -> BoxPairs:
        return BoxPairs(self.found[mask], self.truth[mask], self.iou[mask])


def find_pairs(flat: FlatEvidence, least: float, iou: float) -> BoxPairs:
    """All pairs with a score of at least `least` and an IoU of at least `iou`; crowds are left out."""
    found = (flat.scores >= least).nonzero()[:, 0]
    truth = (~flat.crowd).nonzero()[:, 0]
    counts = flat.true_owner[truth].bincount(minlength=flat.images)
    first, many = counts.cumsum(0) - counts, counts[flat.owner[found]]
    place = torch.arange(int(many.sum())) - (many.cumsum(0) - many).repeat_interleave(many)
    one = found.repeat_interleave(many)
    other = truth[first[flat.owner[one]] + place]
    value = box_iou(flat.boxes[one], flat.true_boxes[other])
    return BoxPairs(one, other, value).pick(value >= iou)


def pair_up(pairs: BoxPairs) -> BoxPairs:
    """One partner for each box, the highest IoU first; of equal ones the first in order.

    A pair that is the best of both its boxes is taken; what it blocks goes; again with the rest."""
    order = pairs.iou.argsort(descending=True, stable=True)
    found, truth = pairs.found[order], pairs.truth[order]
    rank, taken = torch.arange(len(order)), torch.zeros(len(order), dtype=torch.bool)
    alive = torch.ones_like(taken)
    sizes = [int(x.max()) + 1 if len(x) else 0 for x in (found, truth)]
    while alive.any():
        best = [first_rank(x[alive], rank[alive], size) for x, size in zip((found, truth), sizes, strict=True)]
        now = alive & (rank == best[0][found]) & (rank == best[1][truth])
        taken |= now
        used = [torch.zeros(size, dtype=torch.bool) for size in sizes]
        used[0][found[now]], used[1][truth[now]] = True, True
        alive &= ~(used[0][found] | used[1][truth])
    return pairs.pick(order[taken])


def first_rank(number: Tensor, rank: Tensor, size: int) -> Tensor:
    """The least rank of each number (size)."""
    return torch.full((size,), torch.iinfo(torch.long).max).scatter_reduce(0, number, rank, "amin")


def pair_by_class(flat: FlatEvidence, least: float, iou: float) -> tuple[BoxPairs, BoxPairs]:
    """BoxPairs of one class, and pairs of different classes among the boxes that have none of their own."""
    pairs = find_pairs(flat, least, iou)
    same = flat.classes[pairs.found] == flat.true_classes[pairs.truth]
    right = pair_up(pairs.pick(same))
    free = is_free(pairs, right, flat) & ~same
    return right, pair_up(pairs.pick(free))


def is_free(pairs: BoxPairs, taken: BoxPairs, flat: FlatEvidence) -> Tensor:
    """Which pairs have no box that is taken."""
    found, truth = (torch.zeros(len(x), dtype=torch.bool) for x in (flat.boxes, flat.true_boxes))
    found[taken.found], truth[taken.truth] = True, True
    return ~(found[pairs.found] | truth[pairs.truth])


def lies_in_crowd(flat: FlatEvidence, share: float = 0.5) -> Tensor:
    """Which found boxes (n) lie in a crowd of their image and class by more than this share."""
    hidden = torch.zeros(len(flat.boxes), dtype=torch.bool)
    for crowd in flat.crowd.nonzero()[:, 0].tolist():  # rare
        near = ((flat.owner == flat.true_owner[crowd]) & (flat.classes == flat.true_classes[crowd])).nonzero()[:, 0]
        low = torch.maximum(flat.boxes[near, :2], flat.true_boxes[crowd, :2])
        high = torch.minimum(flat.boxes[near, 2:], flat.true_boxes[crowd, 2:])
        sides = flat.boxes[near, 2:] - flat.boxes[near, :2]
        hidden[near] |= (high - low).clamp_min(0).prod(dim=1) > share * sides.prod(dim=1)
    return hidden
