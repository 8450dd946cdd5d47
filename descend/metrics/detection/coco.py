"""The scores of COCO for a detector on a set of images.

    AP of a class at IoU t     the mean over r ∈ {0, 0.01, .., 1} of the best precision at a recall ≥ r (101 points)
    mAP_t                      the mean over the classes that occur in the truth
    mAP = mAP[.5:.95]          the mean over t ∈ {0.5, 0.55, .., 0.95}
    AR_k                       recall with the k best of each class in each image, the mean over classes and t

Small objects have an area up to 32² pixels, medium ones from there to 96², large ones from there on. The books name
COCO's scores and leave their interpolation open: these are COCO's own, number for number. A score without any object to
judge is NaN (COCO prints −1); an answer that finds nothing scores 0.

Systems: average-precision-and-map
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from descend.metrics.detection.evidence import DetectionEvidence, lay_end_to_end
from descend.metrics.detection.matching import RIGHT, WRONG, group, judge_found

THRESHOLDS = torch.from_numpy(np.linspace(0.5, 0.95, 10))
RECALLS = torch.from_numpy(np.linspace(0.0, 1.0, 101))
RANGES = torch.tensor([[0, 1e10], [0, 32**2], [32**2, 96**2], [96**2, 1e10]], dtype=torch.float64)
MOST = (1, 10, 100)
ALMOST = 1 - 1e-10
"""A threshold of 1 asks for no more than this."""
SPACING = float(np.spacing(1))


@dataclass(frozen=True)
class DetectionScores:
    """COCO's twelve numbers, and what they are made of."""

    map: float
    map50: float
    map75: float
    small: float
    medium: float
    large: float
    ar1: float
    ar10: float
    ar100: float
    ar_small: float
    ar_medium: float
    ar_large: float
    per_class: Tensor
    """AP[.5:.95] of each class (classes); NaN for a class that does not occur."""
    per_class50: Tensor
    """AP at IoU 0.5 of each class."""
    precision: Tensor
    """(thresholds 10, recalls 101, classes, sizes 4: all, small, medium, large); NaN without such objects."""
    recall: Tensor
    """(thresholds, classes, sizes, most 3: 1, 10, 100)"""

    def numbers(self) -> dict[str, float]:
        """The twelve by name, without those that had nothing to judge."""
        return {name: value for name, value in vars(self).items() if isinstance(value, float) and value == value}


def judge_detections(evidence: Sequence[DetectionEvidence], classes: int) -> DetectionScores:
    """The scores of a set, from the evidence of each image."""
    flat = lay_end_to_end(evidence, classes)
    groups = group(flat, MOST[-1])
    verdict, counts = judge_found(flat, groups, RANGES, THRESHOLDS.clamp_max(ALMOST))
    true_class = flat.true_classes[groups.truth]
    objects = torch.stack([true_class[row].bincount(minlength=classes) for row in counts]).double()  # (ranges, classes)
    kind = flat.classes[groups.found]
    order = flat.scores[groups.found].argsort(descending=True, stable=True)
    order = order[kind[order].argsort(stable=True)]
    ends = kind.bincount(minlength=classes).cumsum(0)
    return summarize(
        sample_precision(verdict[:, :, order], ends, objects), recalls(verdict, kind, groups.rank, objects)
    )


def sample_precision(verdict: Tensor, ends: Tensor, objects: Tensor) -> Tensor:
    """The best precision at recall ≥ r (thresholds, recalls, classes, ranges), from verdicts by class and score."""
    ranges, thresholds, _ = verdict.shape
    found = torch.full((ranges, thresholds, len(RECALLS), len(ends)), torch.nan, dtype=torch.float64)
    for kind, (start, end) in enumerate(zip([0, *ends.tolist()], ends.tolist(), strict=False)):
        there = objects[:, kind] > 0
        mine = verdict[there, :, start:end]
        right, wrong = ((mine == what).double().cumsum(-1) for what in (RIGHT, WRONG))
        precision = right / (right + wrong + SPACING)
        envelope = precision.flip(-1).cummax(-1).values.flip(-1) if end > start else precision
        recall = right / objects[there, kind, None, None]
        place = torch.searchsorted(recall.contiguous(), RECALLS.expand(*recall.shape[:2], -1).contiguous())
        padded = torch.cat([envelope, envelope.new_zeros(*envelope.shape[:2], 1)], dim=-1)
        found[there, :, :, kind] = padded.gather(-1, place)
    return found.permute(1, 2, 3, 0)


def recalls(verdict: Tensor, kind: Tensor, rank: Tensor, objects: Tensor) -> Tensor:
    """The recall with the best few of each class in each image (thresholds, classes, ranges, most)."""
    ranges, thresholds, _ = verdict.shape
    found = torch.zeros(ranges, thresholds, len(MOST), objects.shape[1], dtype=torch.float64)
    right = (verdict == RIGHT).double()
    for column, most in enumerate(MOST):
        few = rank < most
        found[:, :, column].index_add_(-1, kind[few], right[:, :, few])
    share = torch.where(objects > 0, objects, torch.nan)[:, None, None]
    return (found / share).permute(1, 3, 0, 2)


def summarize(precision: Tensor, recall: Tensor) -> DetectionScores:
    """The means."""
    at = {name: int((THRESHOLDS - t).abs().argmin()) for name, t in (("50", 0.5), ("75", 0.75))}
    mean = lambda x: float(x.nanmean())
    return DetectionScores(
        map=mean(precision[..., 0]),
        map50=mean(precision[at["50"], ..., 0]),
        map75=mean(precision[at["75"], ..., 0]),
        small=mean(precision[..., 1]),
        medium=mean(precision[..., 2]),
        large=mean(precision[..., 3]),
        ar1=mean(recall[:, :, 0, 0]),
        ar10=mean(recall[:, :, 0, 1]),
        ar100=mean(recall[:, :, 0, 2]),
        ar_small=mean(recall[:, :, 1, 2]),
        ar_medium=mean(recall[:, :, 2, 2]),
        ar_large=mean(recall[:, :, 3, 2]),
        per_class=precision[..., 0].mean(dim=(0, 1)),
        per_class50=precision[at["50"], ..., 0].mean(dim=0),
        precision=precision,
        recall=recall,
    )
