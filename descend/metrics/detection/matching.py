"""Which of the boxes that were found are right, as COCO counts: each true box once, the best score first.

    a found box takes the free true box of its class and image with the highest IoU ≥ t
    of equal IoU the later one; those that count before those ignored (crowds; objects outside a range of sizes)

What took an ignored box, or took none and lies itself outside the range, is neither right nor wrong. A crowd can be
taken by many, and IoU with it is the share of the found box that lies in it.

Systems: average-precision-and-map
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.metrics.detection.evidence import FlatEvidence
from descend.native.matching import match_found
from descend.ops.boxes import area, intersection

WRONG, RIGHT, LEFT_OUT = 0, 1, 2
CELLS = 1 << 22
"""Table entries that are worked on at a time."""


@dataclass(frozen=True)
class Groups:
    """Found and true boxes by class, image and (the found) score; a group is a class in an image."""

    found: Tensor
    """Numbers of the found boxes in this order, at most `most` of a group."""
    rank: Tensor
    """Place within the group, from 0."""
    truth: Tensor
    """Numbers of the true boxes."""
    starts: tuple[Tensor, Tensor]
    """Where each group begins among the found and among the true, and the end."""


def group(flat: FlatEvidence, most: int) -> Groups:
    """Sort and cut."""
    keys = flat.classes * flat.images + flat.owner, flat.true_classes * flat.images + flat.true_owner
    by_score = flat.scores.argsort(descending=True, stable=True)
    order = by_score[keys[0][by_score].argsort(stable=True)]
    truth = keys[1].argsort(stable=True)
    lanes = torch.cat(keys).unique()
    found_key, true_key = keys[0][order], keys[1][truth]
    rank = torch.arange(len(order)) - torch.searchsorted(found_key, found_key)
    order, found_key, rank = (x[rank < most] for x in (order, found_key, rank))
    ends = torch.cat([lanes, lanes[-1:] + 1])
    return Groups(order, rank, truth, (torch.searchsorted(found_key, ends), torch.searchsorted(true_key, ends)))


def judge_found(flat: FlatEvidence, groups: Groups, ranges: Tensor, least: Tensor) -> tuple[Tensor, Tensor]:
    """Verdicts WRONG, RIGHT, LEFT_OUT (ranges, thresholds, n) on the found boxes of the groups, and which true boxes
    count (ranges, m), for ranges of the area (ranges, 2) and least IoU (thresholds)."""
    boxes, true_boxes = flat.boxes[groups.found], flat.true_boxes[groups.truth]
    crowd, size = flat.crowd[groups.truth], flat.area[groups.truth]
    sides = boxes[:, 2:] - boxes[:, :2]
    outside = is_outside(sides[:, 0] * sides[:, 1], ranges)
    ignored = is_outside(size, ranges) | crowd
    arguments = (groups.starts, (boxes, true_boxes), crowd, (outside, ignored), least)
    verdict = match_found(*arguments)
    return match_in_ranks(*arguments) if verdict is None else verdict, ~ignored


def is_outside(size: Tensor, ranges: Tensor) -> Tensor:
    """Sizes (n) below or above each range (ranges, 2) -> (ranges, n)"""
    return (size < ranges[:, :1]) | (size > ranges[:, 1:])


def match_in_ranks(
    starts: tuple[Tensor, Tensor],
    boxes: tuple[Tensor, Tensor],
    crowd: Tensor,
    outside: tuple[Tensor, Tensor],
    least: Tensor,
) -> Tensor:
    """Without compiled code: the first box of all groups, then the second of all, ..; groups of like size together."""
    verdict = torch.where(outside[0], LEFT_OUT, WRONG).to(torch.uint8)[:, None].repeat(1, len(least), 1)
    counts = tuple(x.diff() for x in starts)
    work = (counts[0] > 0) & (counts[1] > 0)
    by_size = work.nonzero()[:, 0]
    by_size = by_size[(counts[1][by_size] * 1000 + counts[0][by_size]).argsort()]
    while len(by_size):
        widest = int(counts[1][by_size[0]]) * 2
        few = int((counts[1][by_size] <= widest).sum())
        longest = int(counts[0][by_size[:few]].max())
        some = by_size[: min(few, max(1, CELLS // (widest * max(longest, outside[0].shape[0] * len(least)))))]
        by_size = by_size[len(some) :]
        match_some(some, starts, boxes, crowd, outside, least, verdict)
    return verdict


def match_some(
    some: Tensor, starts: tuple[Tensor, Tensor], boxes: tuple[Tensor, Tensor], crowd: Tensor,
    outside: tuple[Tensor, Tensor], least: Tensor, verdict: Tensor,
) -> None:  # fmt: skip
    """Fill in the verdicts on these groups, padded to the largest: found (g, d), true (g, m)."""
    (found, has), (truth, is_true) = (pad(start, some) for start in starts)
    iou = overlap(boxes[0][found][:, :, None], boxes[1][truth][:, None], crowd[truth][:, None])
    iou = torch.where(is_true[:, None], iou, -1.0)
    flags, ignored = crowd[truth][:, None, None], outside[1][:, truth].transpose(0, 1)[:, :, None]  # (g, ranges, 1, m)
    taken = torch.zeros(len(some), *verdict.shape[:2], truth.shape[1], dtype=torch.bool)
    for rank in range(found.shape[1]):
        row = iou[:, rank, None, None]
        free = (row >= least[:, None]) & (~taken | flags)
        value = torch.where(free, row, -1.0) + torch.where(ignored, 0.0, 4.0) * free  # those that count come first
        best, place = value.flip(-1).max(dim=-1)
        place = truth.shape[1] - 1 - place
        hit = (best >= 0) & has[:, rank, None, None]
        taken.scatter_(-1, place[..., None], taken.gather(-1, place[..., None]) | hit[..., None])
        now = torch.where(best >= 4, RIGHT, LEFT_OUT).to(torch.uint8)
        here = has[:, rank]
        old = verdict[:, :, found[here, rank]]
        verdict[:, :, found[here, rank]] = torch.where(hit[here].permute(1, 2, 0), now[here].permute(1, 2, 0), old)


def pad(start: Tensor, some: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of the members of groups (g, longest), and which of them are there."""
    first, end = start[some], start[some + 1]
    place = torch.arange(int((end - first).max()))
    there = place < (end - first)[:, None]
    return torch.where(there, first[:, None] + place, first[:, None]), there


def overlap(found: Tensor, truth: Tensor, crowd: Tensor) -> Tensor:
    """IoU; with a crowd, the share of the found box that lies in it."""
    both, one = intersection(found, truth), area(found)
    return torch.where(both > 0, both / torch.where(crowd, one, one + area(truth) - both), 0.0)
