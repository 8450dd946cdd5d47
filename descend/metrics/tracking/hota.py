"""HOTA: how well objects are found, times how well their boxes are kept under one name, at every strictness α.

    α = 0.05, 0.10, .. 0.95                   a matched pair is a TP where IoU ≥ α
    DetA_α = TP / (TP + FN + FP)
    A(c) = TPA / (TPA + FNA + FPA)            of a TP c: boxes that its two identities share, of all that either has
    AssA_α = Σ_c A(c) / TP
    HOTA_α = √(DetA_α AssA_α)                 HOTA = mean over α, and so DetA, AssA, LocA

The boxes of a frame are matched once, for all α: by the IoU times how well the two identities fit over the whole video,
J_ij = Σ_t s_ij / (G_i + F_j − Σ_t s_ij), where s_ij is the pair's IoU over the sum of all in its row and column.

Systems: multi-object-tracking
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.metrics.tracking.clear import EPS
from descend.metrics.tracking.sequence import ComparedFrame, ComparedVideo
from descend.ops.tracking.association import match

ALPHAS = torch.arange(1, 20, dtype=torch.float64) / 20


class Hota(NamedTuple):
    """Sums over the boxes at each α (19); they add up over videos."""

    tp: Tensor
    fn: Tensor
    fp: Tensor
    association: Tensor
    """Σ_c A(c)"""
    recalled: Tensor
    """Σ_c TPA / (TPA + FNA)"""
    precise: Tensor
    """Σ_c TPA / (TPA + FPA)"""
    overlap: Tensor
    """Σ_c IoU"""

    @property
    def deta(self) -> Tensor:
        return self.tp / (self.tp + self.fn + self.fp).clamp_min(1)

    @property
    def assa(self) -> Tensor:
        return self.association / self.tp.clamp_min(1)

    @property
    def assre(self) -> Tensor:
        return self.recalled / self.tp.clamp_min(1)

    @property
    def asspr(self) -> Tensor:
        return self.precise / self.tp.clamp_min(1)

    @property
    def loca(self) -> Tensor:
        return torch.where(self.tp > 0, self.overlap / self.tp.clamp_min(1), 1.0)

    @property
    def hota(self) -> Tensor:
        return (self.deta * self.assa).sqrt()


def score_hota(video: ComparedVideo, alphas: Tensor = ALPHAS) -> Hota:
    """The sums of a video."""
    fit = align_identities(video)
    found = [match_by_fit(frame, fit) for frame in video.frames]
    who = torch.cat([t[0] for t in found]) if found else torch.zeros(0, dtype=torch.long)
    by = torch.cat([t[1] for t in found]) if found else torch.zeros(0, dtype=torch.long)
    iou = torch.cat([t[2] for t in found]) if found else torch.zeros(0, dtype=torch.float64)
    right = (iou >= alphas[:, None] - EPS).double()  # (α, pair of boxes)
    pairs, place = torch.unique(torch.stack([who, by]), dim=1, return_inverse=True)
    shared = torch.zeros(len(alphas), pairs.shape[1], dtype=torch.float64).index_add_(1, place, right)
    truth, tracks = video.truth[pairs[0]].double(), video.found[pairs[1]].double()
    tp = right.sum(dim=1)
    return Hota(
        tp,
        video.truth.sum() - tp,
        video.found.sum() - tp,
        (shared.square() / (truth + tracks - shared)).sum(dim=1),
        (shared.square() / truth).sum(dim=1),
        (shared.square() / tracks).sum(dim=1),
        right @ iou,
    )


def align_identities(video: ComparedVideo) -> Tensor:
    """J: how well true and found identities fit (n, m)."""
    shared = torch.zeros(len(video.truth), len(video.found), dtype=torch.float64)
    for frame in video.frames:
        either = frame.iou.sum(dim=0) + frame.iou.sum(dim=1, keepdim=True) - frame.iou
        shared[frame.truth[:, None], frame.found] += torch.where(either > EPS, frame.iou / either, 0.0)
    return shared / (video.truth[:, None] + video.found - shared)


def match_by_fit(frame: ComparedFrame, fit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The identities of the matched boxes of a frame, and their IoU."""
    rows, columns = match(-fit[frame.truth[:, None], frame.found] * frame.iou)
    return frame.truth[rows], frame.found[columns], frame.iou[rows, columns]


def add_hota(parts: list[Hota]) -> Hota:
    """Several videos as one."""
    return Hota(*(torch.stack(column).sum(dim=0) for column in zip(*parts, strict=True)))
