"""Anchor sizes from the data: K-means on the widths and heights of a training set's boxes.

    d(box, prior) = 1 − IoU of the two with one centre = 1 − min(w, p_w) min(h, p_h) / (w h + p_w p_h − that)

The book names no distance; 1 − IoU is the original's. A Euclidean one would let large boxes decide. The centre that
lowers a cluster's 1 − IoU most has no closed form: the mean and the median of its sizes are tried, and the better one
replaces the old centre only if it is better than that. So the mean best IoU never falls.

Systems: kmeans-anchor-priors
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake


class Priors(NamedTuple):
    sizes: Tensor
    """w, h of each prior (k, 2), the smallest area first."""
    ious: list[float]
    """The mean best IoU of all boxes before each step and at the end."""


def size_iou(a: Tensor, b: Tensor) -> Tensor:
    """IoU of sizes w, h with one centre, every one of a (n, 2) with every one of b (k, 2) -> (n, k)"""
    both = torch.minimum(a[:, None, 0], b[:, 0]) * torch.minimum(a[:, None, 1], b[:, 1])
    return both / (a.prod(dim=1)[:, None] + b.prod(dim=1) - both)


def fit_priors(sizes: Tensor, k: int, seed: int = 0, steps: int = 300) -> Priors:
    """K sizes for boxes w, h (n, 2) in any unit."""
    if sizes.ndim != 2 or sizes.shape[1] != 2 or not bool((sizes > 0).all() & sizes.isfinite().all()):
        raise Mistake("priors are fitted to widths and heights (n, 2), all of them positive")
    different = len(sizes.unique(dim=0))
    if not 1 <= k <= different:
        raise Mistake(f"{k} priors cannot be fitted to {different} different sizes of boxes")
    sizes = sizes.double()
    centres = choose_start(sizes, k, torch.Generator().manual_seed(seed))
    ious = [mean_best_iou(sizes, centres)]
    for _ in range(steps):
        centres = improve(sizes, centres)
        ious.append(mean_best_iou(sizes, centres))
        if ious[-1] <= ious[-2]:
            break
    return Priors(centres[centres.prod(dim=1).argsort()].float(), ious)


def mean_best_iou(sizes: Tensor, priors: Tensor) -> float:
    """How well K sizes fit the boxes: the mean of each box's best IoU."""
    return float(size_iou(sizes, priors.to(sizes)).amax(dim=1).mean())


def choose_start(sizes: Tensor, k: int, random: torch.Generator) -> Tensor:
    """Boxes far from each other, by chance: each next one with a probability ∝ d² (k-means++)."""
    centres = sizes[torch.randint(len(sizes), (1,), generator=random)]
    while len(centres) < k:
        far = (1 - size_iou(sizes, centres).amax(dim=1)).clamp_min(0).square()
        centres = torch.cat([centres, sizes[far.multinomial(1, generator=random)]])
    return centres


def improve(sizes: Tensor, centres: Tensor) -> Tensor:
    """One step: every box to its best centre, every centre to the best of itself, its boxes' mean and their median."""
    k = len(centres)
    owner = size_iou(sizes, centres).argmax(dim=1)
    mine = owner[:, None] == torch.arange(k)
    mean = (mine.double().T @ sizes) / mine.sum(dim=0)[:, None]
    middle = torch.where(mine[..., None], sizes[:, None], torch.nan).nanmedian(dim=0).values
    options = torch.stack([centres, mean, middle]).nan_to_num(nan=1.0)  # (3, k, 2); an empty cluster stays
    fit = size_iou(sizes, options.reshape(-1, 2)).view(-1, 3, k)
    total = torch.where(mine[:, None], fit, 0.0).sum(dim=0)
    return options[total.argmax(dim=0), torch.arange(k)]
