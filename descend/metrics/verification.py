"""Verification: are two things the same? By a threshold on their distance.

    same(a, b)  ⇔  d(a, b) ≤ t            t: the threshold with the most right answers on pairs that are known
    EER         the error rate where as many different pairs are accepted as same pairs are refused
    AUC         the probability that a same pair is nearer than a different one

Systems: deepface-verification
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake


def check_both_kinds(same: Tensor) -> None:
    if same.all() or not same.any():
        raise Mistake("pairs that are all the same or all different: a threshold needs some of both kinds")


def best_threshold(d: Tensor, same: Tensor) -> float:
    """The t, halfway between two distances, at which most of the pairs (n) are told rightly."""
    check_both_kinds(same)
    order = d.double().argsort()
    d, same = d.double()[order], same[order].bool()
    right = same.cumsum(0) + ((~same).sum() - (~same).cumsum(0))  # the first i + 1 are taken for the same
    right[:-1].masked_fill_(d[:-1] == d[1:], -1)  # a threshold cannot part equal distances
    best = int(right.argmax())
    if int((~same).sum()) >= int(right[best]):  # none is taken for the same
        return float(d[0]) - 1
    return float((d[best] + d[min(best + 1, len(d) - 1)]) / 2)


def verification_accuracy(d: Tensor, same: Tensor, threshold: float) -> float:
    """Share of pairs that d ≤ t tells rightly."""
    return float(((d <= threshold) == same.bool()).double().mean())


def ranking_auc(d: Tensor, same: Tensor) -> float:
    """P(d of a same pair < d of a different pair), ties half."""
    check_both_kinds(same)
    near, far = d[same.bool()].double(), d[~same.bool()].double()
    wins = (near[:, None] < far).double() + (near[:, None] == far).double() / 2
    return float(wins.mean())


def equal_error_rate(d: Tensor, same: Tensor) -> float:
    """The mean of both error rates at the threshold where they are nearest to each other."""
    check_both_kinds(same)
    t = d.double().unique()
    near, far = d[same.bool()].double(), d[~same.bool()].double()
    refused = 1 - torch.searchsorted(near.sort().values, t, right=True).double() / len(near)
    accepted = torch.searchsorted(far.sort().values, t, right=True).double() / len(far)
    at = (refused - accepted).abs().argmin()
    return float((refused[at] + accepted[at]) / 2)
