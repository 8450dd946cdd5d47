"""Retrieval between two sets: for each query, is a right answer among the k best?

    recall@k = (1/n) Σ_i [some j that belongs to i is among the k largest of s_i·]

Scores s (n, m) go from queries to candidates: images to texts, or transposed. With one right candidate each, recall@1
is the accuracy of the nearest neighbour; guessing has recall@k = k/m.

Systems: clip, cross-and-bi-encoder
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake


def hits(scores: Tensor, belongs: Tensor, k: int = 1) -> Tensor:
    """1 where one of the k best candidates belongs to the query, else 0: (n, m), (n, m) of bool -> (n)."""
    if scores.shape != belongs.shape:
        raise Mistake(f"scores {tuple(scores.shape)} and truth {tuple(belongs.shape)}: give both as (queries, items)")
    if not 1 <= k <= scores.shape[1]:
        raise Mistake(f"recall@{k} among {scores.shape[1]} candidates: k is between 1 and their number")
    return belongs.gather(1, scores.topk(k, dim=1).indices).any(1).float()


def recall(scores: Tensor, belongs: Tensor, k: int = 1) -> float:
    """recall@k of queries that have an answer."""
    answered = belongs.any(1)
    if not answered.any():
        raise Mistake("no query has a right answer among the candidates")
    return float(hits(scores[answered], belongs[answered], k).mean())


def mean_reciprocal_rank(scores: Tensor, belongs: Tensor) -> float:
    """MRR = (1/n) Σ_i 1 / (the rank of the best right answer of query i); of equal scores the wrong ones come first."""
    best = scores.masked_fill(~belongs, -torch.inf).amax(1, keepdim=True)
    rank = 1 + ((scores >= best) & ~belongs).sum(1)
    return float((1 / rank.double()).mean())


def pairs(n: int) -> Tensor:
    """Query i belongs to candidate i and no other: (n, n)"""
    return torch.eye(n, dtype=torch.bool)
