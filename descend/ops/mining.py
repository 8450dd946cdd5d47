"""Hard negative mining: of the candidates that are not like the anchor, the ones that it could be confused with.

    hardest      argmax_j s(a, n_j)                                      the most similar
    semi-hard    argmin_j d(a, n_j)  with  d(a, p) < d(a, n_j) < d(a, p) + m      beyond the positive, but in reach
    top-k        the k most similar, one after the other

`allowed` (n, m) says which candidates are negatives of which anchor: of another label, of another image, or distant in
time. Candidates are those of a batch or of a memory. Where an anchor has no such negative, the index is −1. DLN asks
for "negatives that truly challenge the model" and gives no procedure; semi-hard ones are FaceNet's: the hardest alone
may pull everything into one point early in training.

Systems: hard-negative-mining
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.errors import Mistake

Miner = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Similarities (n, m), allowed (n, m), similarity of each anchor's positive (n) -> indices (n, k), −1 for none."""


def differ(labels: Tensor, others: Tensor) -> Tensor:
    """Whether anchor i and candidate j have different labels: (n), (m) -> (n, m)."""
    return labels[:, None] != others


def hardest(similarity: Tensor, allowed: Tensor) -> Tensor:
    """The most similar negative of each anchor: (n, m) twice -> (n)."""
    return top_k(similarity, allowed, 1)[:, 0]


def top_k(similarity: Tensor, allowed: Tensor, k: int) -> Tensor:
    """The k most similar negatives of each anchor, the most similar first; −1 where there are fewer: -> (n, k)."""
    if not 1 <= k <= similarity.shape[1]:
        raise Mistake(f"{k} negatives of {similarity.shape[1]} candidates: choose 1 to {similarity.shape[1]}")
    value, index = similarity.masked_fill(~allowed, -torch.inf).topk(k, dim=1)
    return index.masked_fill(value == -torch.inf, -1)


def semi_hard(distance: Tensor, allowed: Tensor, positive: Tensor, margin: float) -> Tensor:
    """The nearest negative beyond the positive (n) and within the margin: distances (n, m) -> (n)."""
    within = allowed & (distance > positive[:, None]) & (distance < positive[:, None] + margin)
    value, index = distance.masked_fill(~within, torch.inf).min(dim=1)
    return index.masked_fill(value == torch.inf, -1)


def mine_all(similarity: Tensor, allowed: Tensor, positive: Tensor) -> Tensor:
    """Every negative: no mining."""
    return torch.arange(similarity.shape[1], device=allowed.device).where(allowed, -1)


def mine_hardest(similarity: Tensor, allowed: Tensor, positive: Tensor) -> Tensor:
    """One negative for each anchor."""
    return top_k(similarity, allowed, 1)


def mine_top(k: int) -> Miner:
    """k negatives for each anchor, or as many as there are candidates."""
    return lambda similarity, allowed, positive: top_k(similarity, allowed, min(k, similarity.shape[1]))


def mine_semi_hard(margin: float) -> Miner:
    """One negative for each anchor, by the distance 1 − cos."""
    return lambda similarity, allowed, positive: semi_hard(1 - similarity, allowed, 1 - positive, margin)[:, None]
