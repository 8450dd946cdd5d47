"""CLEAR MOT: every true box of a frame is matched with at most one found box, and errors are counted.

    MOTA = 1 − (FN + FP + IDSW) / GT              GT: true boxes of all frames
    MOTP = Σ IoU of the matched pairs / TP        py-motmetrics tells the distance, 1 − MOTP

A pair of true and found identity that was matched before stays matched while its IoU is at least τ = ½. The others are
matched so that there are most pairs, of these with the greatest IoU. IDSW: a true object is matched with another
identity than the time before. Which time is before is not the same everywhere: `memory` frames back (py-motmetrics: any
number; TrackEval: 1, and a switch still counts at any distance).

Mostly tracked: at least 80% of the frames of an object; mostly lost: below 20%. A fragmentation: an object that was
tracked is missed and tracked again.

Systems: multi-object-tracking
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.metrics.tracking.sequence import ComparedFrame, ComparedVideo
from descend.ops.tracking.association import match

FOREVER = 2**31
EPS = 2.0**-52


class Clear(NamedTuple):
    """Counts, which add up over videos, and what follows from them."""

    matches: int
    """TP"""
    misses: int
    """FN"""
    false_positives: int
    """FP"""
    switches: int
    """IDSW"""
    fragmentations: int
    mostly_tracked: int
    partly_tracked: int
    mostly_lost: int
    overlap: float
    """Σ IoU of the matched pairs."""

    @property
    def mota(self) -> float:
        wrong = self.misses + self.false_positives + self.switches
        truth = self.matches + self.misses
        return 1 - wrong / truth if truth else (0.0 if wrong else 1.0)

    @property
    def motp(self) -> float:
        return self.overlap / max(self.matches, 1)

    @property
    def precision(self) -> float:
        return self.matches / max(self.matches + self.false_positives, 1)

    @property
    def recall(self) -> float:
        return self.matches / max(self.matches + self.misses, 1)


def score_clear(video: ComparedVideo, tau: float = 0.5, memory: int = FOREVER) -> Clear:
    """The counts of a video."""
    objects = len(video.truth)
    last, since = torch.full((objects,), -1), torch.zeros(objects, dtype=torch.long)
    tracked, runs = torch.zeros(objects, dtype=torch.long), torch.zeros(objects, dtype=torch.long)
    was_tracked = torch.zeros(objects, dtype=torch.bool)
    matches = switches = time = 0
    overlap = 0.0
    for frame in video.frames:
        both = len(frame.truth) > 0 and len(frame.found) > 0
        time += both  # a frame with nothing to match ends no memory
        remembered = torch.where(time - since <= memory, last, -1)
        rows, columns = match_frame(frame, remembered, tau)
        who, by = frame.truth[rows], frame.found[columns]
        switches += int(((last[who] >= 0) & (last[who] != by)).sum())
        matches, overlap = matches + len(rows), overlap + float(frame.iou[rows, columns].sum())
        last[who], since[who] = by, time
        tracked[who] += 1
        now = torch.zeros(objects, dtype=torch.bool)
        now[who] = True
        runs += now & ~was_tracked  # stretches of frames in which the object is there and tracked
        was_tracked[frame.truth] = now[frame.truth]
    share = tracked / video.truth.clamp_min(1)
    mostly, lost = int((share >= 0.8).sum()), int((share < 0.2).sum())
    return Clear(
        matches,
        int(video.truth.sum()) - matches,
        int(video.found.sum()) - matches,
        switches,
        int((runs - 1).clamp_min(0).sum()),
        mostly,
        objects - mostly - lost,
        lost,
        overlap,
    )


def match_frame(frame: ComparedFrame, last: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    """Rows and columns of the matched boxes, where the objects were matched with the identities `last` before."""
    possible = frame.iou >= tau - EPS
    kept = possible & (frame.found == last[frame.truth][:, None])
    kept &= kept.cumsum(dim=0) == 1  # one that two objects had before stays with the first
    rows, columns = torch.where(kept)
    free = possible & ~kept.any(dim=1, keepdim=True) & ~kept.any(dim=0, keepdim=True)
    more_rows, more_columns = match(-frame.iou, free)
    return torch.cat([rows, more_rows]), torch.cat([columns, more_columns])


def add_clear(parts: list[Clear]) -> Clear:
    """Several videos as one."""
    return Clear(*(sum(column) for column in zip(*parts, strict=True)))
