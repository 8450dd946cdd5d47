"""Magnitude pruning: the weights nearest to zero become zero.

    w' = w if |w| > τ else 0                                a threshold
    w' = 0 for the round(s n) smallest |w| of n             a target sparsity s; of equal ones the first go first

The share of zeros is the share of |w| ≤ τ, zeros that were there included. A mask says which weights stay; w ⊙ mask is
the pruned weight, as often as it is taken.

Systems: magnitude-pruning
"""

from __future__ import annotations

import torch
from torch import Tensor


def above(w: Tensor, tau: float) -> Tensor:
    """The mask of a threshold: |w| > τ."""
    if not tau >= 0:
        raise ValueError(f"a threshold of {tau}; it must be at least 0")
    return w.abs() > tau


def largest(w: Tensor, sparsity: float) -> Tensor:
    """The mask of a target: all but the round(s n) smallest."""
    if not 0 <= sparsity <= 1:
        raise ValueError(f"a sparsity of {sparsity}; it is a share, 0 to 1")
    mask = torch.ones(w.numel(), dtype=torch.bool, device=w.device)
    order = w.detach().abs().flatten().argsort(stable=True)
    mask[order[: round(sparsity * w.numel())]] = False
    return mask.view_as(w)


def largest_of_all(weights: list[Tensor], sparsity: float) -> list[Tensor]:
    """The masks of one target for several tensors together: some lose more than others."""
    mask = largest(torch.cat([w.detach().flatten() for w in weights]), sparsity)
    parts = mask.split([w.numel() for w in weights])
    return [part.view_as(w) for part, w in zip(parts, weights, strict=True)]


def sparsity(w: Tensor) -> float:
    """The share of zeros."""
    return float((w == 0).double().mean())
