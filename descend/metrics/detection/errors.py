"""What went wrong, box by box: the gallery of a detector's mistakes.

    confused   a true object was found, under another class                    IoU ≥ t, another class
    loose      a true object was found, at the wrong place or size             IoU from `loose` to t, its class
    repeated   a true object was found once more                               IoU ≥ t, its class, but it is taken
    invented   nothing is there
    missed     a true object that none of these speaks of

The worst come first: by score, and missed objects by size. What lies in a crowd of its class is no mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from descend.metrics.detection.evidence import DetectionEvidence, FlatEvidence, lay_end_to_end
from descend.metrics.detection.pairing import BoxPairs, find_pairs, is_free, lies_in_crowd, pair_by_class, pair_up

NONE = -1


class DetectionError(NamedTuple):
    """One mistake. Boxes are numbered within their image; NONE where there is no such box."""

    image: int
    found: int
    truth: int
    iou: float
    score: float


def find_errors(
    evidence: Sequence[DetectionEvidence], classes: int, least: float = 0.25, iou: float = 0.5, loose: float = 0.1
) -> dict[str, list[DetectionError]]:
    """The mistakes of a set by kind."""
    flat = lay_end_to_end(evidence, classes)
    right, confused = pair_by_class(flat, least, iou)
    near = find_pairs(flat, least, loose)
    near = near.pick(flat.classes[near.found] == flat.true_classes[near.truth])
    known = join(right, confused)
    off = pair_up(near.pick(is_free(near, known, flat)))
    spoken = torch.zeros(len(flat.boxes), dtype=torch.bool)
    spoken[join(known, off).found] = True
    again = near.pick((near.iou >= iou) & ~spoken[near.found])
    again = again.pick(first_of_each(again.found))
    spoken[again.found] = True
    invented = (flat.scores >= least) & ~lies_in_crowd(flat) & ~spoken
    missed = ~flat.crowd
    missed[join(known, off).truth] = False
    alone = invented.nonzero()[:, 0]
    return {
        "confused": describe(flat, confused),
        "loose": describe(flat, off),
        "repeated": describe(flat, again),
        "invented": describe(flat, BoxPairs(alone, torch.full_like(alone, NONE), flat.scores.new_zeros(len(alone)))),
        "missed": describe_missed(flat, missed.nonzero()[:, 0]),
    }


def join(a: BoxPairs, b: BoxPairs) -> BoxPairs:
    return BoxPairs(*(torch.cat([x, y]) for x, y in zip(a, b, strict=True)))


def first_of_each(numbers: Tensor) -> Tensor:
    """Where each number of a sorted column comes for the first time."""
    return torch.cat([numbers.new_ones(1), numbers.diff()])[: len(numbers)] != 0


def number_within(owner: Tensor) -> Tensor:
    """The place of each box within its image, from owners in order."""
    return torch.arange(len(owner)) - torch.searchsorted(owner, owner)


def describe(flat: FlatEvidence, pairs: BoxPairs) -> list[DetectionError]:
    """The best score first."""
    pairs = pairs.pick(flat.scores[pairs.found].argsort(descending=True, stable=True))
    truth = torch.cat([number_within(flat.true_owner), torch.tensor([NONE])])[pairs.truth]
    columns = (
        flat.owner[pairs.found],
        number_within(flat.owner)[pairs.found],
        truth,
        pairs.iou,
        flat.scores[pairs.found],
    )
    return [DetectionError(*row) for row in zip(*(x.tolist() for x in columns), strict=True)]


def describe_missed(flat: FlatEvidence, truth: Tensor) -> list[DetectionError]:
    """The largest first."""
    truth = truth[flat.area[truth].argsort(descending=True, stable=True)]
    rows = zip(flat.true_owner[truth].tolist(), number_within(flat.true_owner)[truth].tolist(), strict=True)
    return [DetectionError(image, NONE, number, 0.0, 0.0) for image, number in rows]
