"""Losses that ask for a margin between scores; labels y are −1 or 1. One value for each example, never reduced.

    hinge         max(0, m − y x)                                       0 beyond the margin, straight below it
    soft margin   log(1 + exp(−y x)) = −log σ(y x)                      = binary cross-entropy with labels 0, 1
    ranking       max(0, −y (x₁ − x₂) + m)                              y = 1: x₁ is to stand above x₂
    multi-label   (1/C) Σ_{j ∈ targets} Σ_{i ∉ targets} max(0, 1 − (x_j − x_i))

Errata: the soft margin loss enforces no margin of 1 (DLN says so): loss and gradient are above 0 for every y x. In the
multi-label loss i runs over the classes that are NOT targets (DLN: over all, which adds at least 1/C for each target);
C is the number of classes, not the batch.

Systems: hinge-loss, soft-margin-loss, margin-ranking-loss, multilabel-margin-loss
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.checks import refuse, same_shape, signs


def hinge(x: Tensor, y: Tensor, margin: float = 1.0) -> Tensor:
    """max(0, m − y x) of each score."""
    same_shape(x, y, "scores and labels")
    signs(y)
    return (margin - y * x).relu()


def soft_margin(x: Tensor, y: Tensor) -> Tensor:
    """log(1 + exp(−y x)) of each score, exact for scores of ±1e4 (torch's soft_margin_loss overflows there)."""
    same_shape(x, y, "scores and labels")
    signs(y)
    return -F.logsigmoid(y * x)


def margin_ranking(x1: Tensor, x2: Tensor, y: Tensor, margin: float = 0.0) -> Tensor:
    """max(0, −y (x₁ − x₂) + m) of each pair of scores."""
    same_shape(x1, x2, "first and second scores")
    same_shape(x1, y, "scores and labels")
    signs(y)
    return (margin - y * (x1 - x2)).relu()


def multilabel_margin(x: Tensor, targets: Tensor) -> Tensor:
    """(1/C) Σ_j Σ_i max(0, 1 − (x_j − x_i)): scores (.., C), rows of targets (.., C) ended by −1 -> (..)."""
    same_shape(x, targets, "scores and target rows")
    classes = x.shape[-1]
    try:
        if x.dim() <= 2:
            return F.multilabel_margin_loss(x, targets, reduction="none")
        rows = F.multilabel_margin_loss(x.reshape(-1, classes), targets.reshape(-1, classes), reduction="none")
        return rows.view(x.shape[:-1])
    except RuntimeError:
        bad = (targets < -1) | (targets >= classes)
        if bad.any():
            refuse(bad, targets, f"target {{}} is not one of the classes 0 to {classes - 1}, or the -1 that ends a row")
        raise


def target_rows(lists: Sequence[Sequence[int]], classes: int) -> Tensor:
    """Lists of targets, one for each example and of any lengths, as the rows that `multilabel_margin` takes."""
    rows = torch.full((len(lists), classes), -1)
    for record, targets in enumerate(lists):
        if len(set(targets)) != len(targets) or not all(0 <= j < classes for j in targets):
            raise Mistake(f"record {record}: targets {list(targets)} are not different classes 0 to {classes - 1}")
        rows[record, : len(targets)] = torch.tensor(targets, dtype=torch.long)
    return rows
