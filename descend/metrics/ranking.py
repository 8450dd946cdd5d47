"""How well a score ranks what is (y = 1) above what is not (y = 0), whatever the threshold.

    AUC    the probability that a positive is scored above a negative, ties half        0.5 is chance, 1 is perfect
           = (Σ_{y_i = 1} rank_i − P (P + 1) / 2) / (P N),   ranks of equal scores shared; P positives, N negatives
    AP     Σ_k (R_k − R_{k−1}) P_k over the thresholds, precision P and recall R        chance: the share of positives

Both are NaN where one of the two kinds is missing.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def find_auc(score: Tensor, y: Tensor) -> float:
    """Area under the ROC curve of scores (n) for y (n) of 0 and 1."""
    positive = y.bool()
    p, n = int(positive.sum()), int((~positive).sum())
    if not (p and n):
        return math.nan
    _, place, counts = score.double().unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    rank = last - (counts.double() - 1) / 2  # of equal scores: the middle of their places 1..n
    return (float(rank[place][positive].sum()) - p * (p + 1) / 2) / (p * n)


def average_precision(score: Tensor, y: Tensor) -> float:
    """Area under the steps of the precision-recall curve; equal scores pass the threshold together."""
    positive = y.bool()
    p = int(positive.sum())
    if not p or p == len(y):
        return math.nan
    _, place, counts = (-score.double()).unique(return_inverse=True, return_counts=True)
    hits = torch.zeros(len(counts), dtype=torch.float64, device=score.device).index_add(0, place, positive.double())
    precision = hits.cumsum(0) / counts.cumsum(0)
    return float((hits * precision).sum() / p)
