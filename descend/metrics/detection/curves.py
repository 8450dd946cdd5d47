"""Precision against recall as the least score falls, and average precision: the area under that curve.

    precision = TP / (TP + FP)        recall = TP / (TP + FN)        AP_t = ∫₀¹ precision(r) dr,  right means IoU ≥ t

The book sums the area numerically and does not say how. All forms in use are here; a step is ∆r_i = r_i − r_{i−1}:

    plain area     Σ_i p_i ∆r_i                            all points; as in information retrieval
    envelope       Σ_i max_{j ≥ i} p_j ∆r_i                all points, precision never rising; PASCAL VOC since 2010
    101 points     mean over r = 0, 0.01, .., 1 of the envelope at r           COCO
    11 points      mean over r = 0, 0.1, .., 1                                  PASCAL VOC 2007

Each true box is found once, by the best score; a second box on it is wrong (`matching.py`).

Systems: average-precision-and-map
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from descend.metrics.detection.evidence import DetectionEvidence, lay_end_to_end
from descend.metrics.detection.matching import LEFT_OUT, RIGHT, group, judge_found

ALL = torch.tensor([[0, torch.inf]], dtype=torch.float64)


class PrecisionRecall(NamedTuple):
    """A point for each found box, the best score first."""

    precision: Tensor
    recall: Tensor
    scores: Tensor
    """The threshold at which the point is reached."""


def trace_curve(
    evidence: Sequence[DetectionEvidence], kind: int, least: float = 0.5, most: int = 100
) -> PrecisionRecall:
    """The curve of one class at IoU ≥ `least`, with at most so many boxes of an image. Without true objects recall is
    NaN."""
    flat = lay_end_to_end(
        evidence, max([kind, *(int(c.max()) for e in evidence for c in (e.classes, e.true_classes) if len(c))]) + 1
    )
    groups = group(flat, most)
    verdict, counts = judge_found(flat, groups, ALL, torch.tensor([least], dtype=torch.float64))
    mine = (flat.classes[groups.found] == kind) & (verdict[0, 0] != LEFT_OUT)
    objects = int((counts[0] & (flat.true_classes[groups.truth] == kind)).sum())
    scores, right = flat.scores[groups.found][mine], verdict[0, 0][mine] == RIGHT
    order = scores.argsort(descending=True, stable=True)
    return PrecisionRecall(*precision_and_recall(right[order], objects), scores[order])


def precision_and_recall(right: Tensor, objects: int) -> tuple[Tensor, Tensor]:
    """Of the best 1, 2, .., n of what was found, which is right or not (n, by score)."""
    hits = right.double().cumsum(0)
    return hits / torch.arange(1, len(right) + 1), hits / (objects or torch.nan)


def steps(recall: Tensor) -> Tensor:
    """∆r_i, the first from 0."""
    return recall.diff(prepend=recall.new_zeros(1))


def envelope(precision: Tensor) -> Tensor:
    """max_{j ≥ i} p_j: the best precision at this recall or a higher one."""
    return precision.flip(0).cummax(0).values.flip(0) if len(precision) else precision


def plain_area(curve: PrecisionRecall) -> float:
    """Σ_i p_i ∆r_i"""
    return float((curve.precision * steps(curve.recall)).sum())


def envelope_area(curve: PrecisionRecall) -> float:
    """Σ_i max_{j ≥ i} p_j ∆r_i"""
    return float((envelope(curve.precision) * steps(curve.recall)).sum())


def mean_at(curve: PrecisionRecall, recalls: Tensor) -> float:
    """The mean of the envelope at these recalls; 0 beyond the last point."""
    place = torch.searchsorted(curve.recall.contiguous(), recalls)
    return float(torch.cat([envelope(curve.precision), curve.precision.new_zeros(1)])[place].mean())


def average_101(curve: PrecisionRecall) -> float:
    """COCO's."""
    return mean_at(curve, torch.linspace(0, 1, 101, dtype=torch.float64))


def average_11(curve: PrecisionRecall) -> float:
    """PASCAL VOC 2007's."""
    return mean_at(curve, torch.linspace(0, 1, 11, dtype=torch.float64))
