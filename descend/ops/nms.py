"""Non-maximum suppression: of boxes that overlap too much, the best is kept.

    sort by score;  keep the best,  delete all others with IoU > τ (strict),  repeat with what is left

Of equal scores the earlier box is the better one. Boxes of different groups (classes, images) do not see each other.
`suppress` is the algorithm as it stands; `nms` and `batched_nms` give the same boxes by a compiled scan
(`native/nms.cpp`), or, without a compiler, in rounds: the best boxes left, by the hundreds, are settled among
themselves and then delete what they overlap.

What can overlap is found by the left sides. If IoU > τ, the same holds of the intervals along x; so of two boxes of a
group the one further right begins within a window of the other's left side:

    x0_i ≤ x0_j < x0_i + (1 − τ) w_i

Systems: non-maximum-suppression
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.errors import Mistake
from descend.native import nms as native
from descend.ops.boxes import box_iou

ROUND = 128
"""Boxes that are settled together, at least."""
SLACK = 1e-5
"""The window is a little wider than the bound, so that rounding excludes nothing."""


def suppress(boxes: Tensor, scores: Tensor, tau: float) -> Tensor:
    """The numbers of the boxes (n, 4) that are kept, by score: one box after the other."""
    left = scores.argsort(descending=True, stable=True)
    kept = []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        left = left[~(box_iou(boxes[best], boxes[left]) > tau)]
    return torch.stack(kept) if kept else left


def nms(boxes: Tensor, scores: Tensor, tau: float) -> Tensor:
    """The numbers of the boxes x0, y0, x1, y1 (n, 4) that are kept, by score."""
    return batched_nms(boxes, scores, torch.zeros_like(scores, dtype=torch.long), tau)


def batched_nms(boxes: Tensor, scores: Tensor, groups: Tensor, tau: float) -> Tensor:
    """The same for each group (n) alone, as class or image: numbers of all kept boxes, by score."""
    if not 0 <= tau <= 1:
        raise Mistake(f"the threshold of an IoU is from 0 to 1, not {tau}")
    n = len(boxes)
    if boxes.shape != (n, 4) or scores.shape != (n,) or groups.shape != (n,):
        shapes = ", ".join(str(tuple(x.shape)) for x in (boxes, scores, groups))
        raise Mistake(f"boxes (n, 4), scores (n) and groups (n) do not fit: {shapes}")
    kept = native.scan(boxes.detach(), scores.detach(), groups, tau)
    return scan(boxes.detach(), scores.detach(), groups, tau) if kept is None else kept


def keep_best(
    boxes: Tensor, scores: Tensor, classes: Tensor, tau: float, least: float = 0.001, most: int = 100
) -> Boxes:
    """Of the boxes (b, n, 4) of each image those that stand after suppression within each class, the best first.

    Scores and classes are (b, n); a class of −1 pads. At most `most` of an image, none with a score below `least`."""
    image, place = ((scores >= least) & (classes >= 0)).nonzero(as_tuple=True)
    score, kind = scores[image, place], classes[image, place]
    kinds = int(kind.max()) + 1 if len(kind) else 1
    kept = batched_nms(boxes[image, place], score, image * kinds + kind, tau)
    image, place = image[kept], place[kept]
    return pad_best(Boxes(*(x[image, place] for x in (boxes, classes, scores))), image, len(boxes), most)


def pad_best(flat: Boxes, image: Tensor, b: int, most: int) -> Boxes:
    """The first `most` of each of b images, from boxes in a row (k) and their images (k), padded as need be."""
    order = image.argsort(stable=True)
    image = image[order]
    counts = image.bincount(minlength=b)
    rank = torch.arange(len(image), device=image.device) - (counts.cumsum(0) - counts)[image]
    order, image, rank = (x[rank < most] for x in (order, image, rank))
    m = int(rank.max()) + 1 if len(rank) else 0
    found = Boxes(flat.boxes.new_zeros(b, m, 4), flat.classes.new_full((b, m), -1), flat.scores.new_zeros(b, m))
    for into, source in zip(found, flat, strict=True):
        into[image, rank] = source[order]
    return found


def scan(boxes: Tensor, scores: Tensor, groups: Tensor, tau: float) -> Tensor:
    """In rounds (see above), without compiled code."""
    n, device = len(boxes), boxes.device
    by_score = scores.argsort(descending=True, stable=True)
    rank = torch.empty(n, dtype=torch.long, device=device)
    rank[by_score] = torch.arange(n, device=device)
    lanes = Lanes(boxes, groups, tau)
    rank, left = rank[lanes.order], lanes.places[by_score]
    alive, kept = torch.ones(n, dtype=torch.bool, device=device), torch.zeros(n, dtype=torch.bool, device=device)
    size = ROUND
    while len(left):
        first = left[:size].sort().values
        best = settle(lanes, first, rank)
        kept[best], alive[first] = True, False
        others = alive.nonzero().squeeze(1)
        alive[lanes.find_overlaps(best, others)[1]] = False
        alive[lanes.find_overlaps(others, best)[0]] = False
        left = left[alive[left]]
        size = max(ROUND, 4 * len(best))  # where most are kept, there is little to gain from small rounds
    found = kept.nonzero().squeeze(1)
    return lanes.order[found[rank[found].argsort()]]


def settle(lanes: Lanes, places: Tensor, rank: Tensor) -> Tensor:
    """Which of these boxes (k, sorted places) are kept, judged by each other: a box is kept unless a kept box with a
    better rank overlaps it. Repeated from "all are", this is right for one more link of every chain each time."""
    one, other = lanes.find_overlaps(places, places)
    first = rank[one] < rank[other]
    strong, weak = torch.where(first, one, other), torch.where(first, other, one)
    kept = torch.zeros(len(rank), dtype=torch.bool, device=places.device)
    kept[places] = True
    while True:
        now = kept.clone()
        now[places] = True
        now[weak[kept[strong] & (strong != weak)]] = False
        if torch.equal(now, kept):
            return places[kept[places]]
        kept = now


class Lanes:
    """Boxes by group and left side, so that those which may overlap are neighbours."""

    def __init__(self, boxes: Tensor, groups: Tensor, tau: float):
        low, high = boxes.double().nan_to_num().view(-1, 2, 2).unbind(1)
        side, start = (high - low).clamp_min(0), groups.unique(return_inverse=True)[1]
        x, span = low[:, 0] - low[:, 0].amin() if len(low) else low[:, 0], 1.0
        if len(low):
            span = float(x.amax()) + 1
        key = start * (2 * span) + x
        self.order = key.argsort(stable=True)
        self.places = torch.empty_like(self.order)
        self.places[self.order] = torch.arange(len(low), device=boxes.device)
        self.tau, self.boxes, self.key = tau, boxes[self.order].T.contiguous(), key[self.order]
        slack = SLACK * (span + side[:, 0])
        self.reach = torch.minimum(key + side[:, 0] * (1 - tau) + slack, start * (2 * span) + span)[self.order]

    def find_overlaps(self, places: Tensor, among: Tensor) -> tuple[Tensor, Tensor]:
        """Pairs (i of places, j of among, both sorted) with IoU > τ and x0_i ≤ x0_j."""
        keys, boxes, others = self.key[among], self.boxes[:, places], self.boxes[:, among]
        begin = torch.searchsorted(keys, self.key[places])
        counts = torch.searchsorted(keys, self.reach[places], right=True) - begin
        total = int(counts.sum())
        one = torch.arange(len(places), device=keys.device).repeat_interleave(counts, output_size=total)
        other = torch.arange(total, device=keys.device) + (begin - counts.cumsum(0) + counts).index_select(0, one)
        top, bottom = boxes[1].index_select(0, one), boxes[3].index_select(0, one)
        meet = (top < others[3].index_select(0, other)) & (others[1].index_select(0, other) < bottom)
        one, other = (x.masked_select(meet) for x in (one, other))
        over = (box_iou(boxes.index_select(1, one).T, others.index_select(1, other).T) > self.tau).nonzero().squeeze(1)
        return places[one[over]], among[other[over]]
