"""IDF1: true and found identities are paired once for the whole video, one to one, by the boxes that they share.

    n_ij = frames in which true identity i and found identity j have an IoU ≥ τ
    IDTP = max Σ n_ij over pairings               IDFN = GT − IDTP,  IDFP = boxes found − IDTP
    IDF1 = 2 IDTP / (2 IDTP + IDFN + IDFP),  IDP = IDTP / (IDTP + IDFP),  IDR = IDTP / (IDTP + IDFN)

MOTA counts a switch once; IDF1 counts every box under the wrong name.

Systems: multi-object-tracking
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from descend.metrics.tracking.clear import EPS
from descend.metrics.tracking.sequence import ComparedVideo
from descend.ops.tracking.association import match


class IdentityCounts(NamedTuple):
    """Boxes under the right name, and the others; they add up over videos."""

    true_positives: int
    misses: int
    false_positives: int

    @property
    def f1(self) -> float:
        return 2 * self.true_positives / max(2 * self.true_positives + self.misses + self.false_positives, 1)

    @property
    def precision(self) -> float:
        return self.true_positives / max(self.true_positives + self.false_positives, 1)

    @property
    def recall(self) -> float:
        return self.true_positives / max(self.true_positives + self.misses, 1)


def score_identity(video: ComparedVideo, tau: float = 0.5) -> IdentityCounts:
    """The counts of a video."""
    shared = torch.zeros(len(video.truth), len(video.found), dtype=torch.float64)
    for frame in video.frames:
        shared[frame.truth[:, None], frame.found] += (frame.iou >= tau - EPS).double()
    right = int(shared[match(-shared)].sum())
    return IdentityCounts(right, int(video.truth.sum()) - right, int(video.found.sum()) - right)


def add_identity(parts: list[IdentityCounts]) -> IdentityCounts:
    """Several videos as one."""
    return IdentityCounts(*(sum(column) for column in zip(*parts, strict=True)))
