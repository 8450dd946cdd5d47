"""The shape of a cloud of embeddings: how narrow it is, which directions mean something, how classes lie in it.

    anisotropy          mean cosine of two different rows: 0 for a round cloud, near 1 for a narrow cone (VOM 7.5.2)
    centred             E − mean row: what a cone needs to become round
    without_top         also without the first k principal components, which often hold frequency, not meaning
    concept direction   mean of the differences v(b) − v(a) over pairs (he, she), (king, queen) …, or their first
                        principal component; a word's score is its projection
    class contrast      mean cosine within classes and between them: interchangeable words are nearer (VOM 7.3.1)
    flat map            the first two principal components

The mean over all pairs needs no V × V matrix: with unit rows u_i, Σ_{i≠j} u_i·u_j = ‖Σ u_i‖² − Σ ‖u_i‖². VOM names
"normalization techniques" against anisotropy without giving one; centring and top components are the usual ones.

Systems: embedding-geometry, embedding-analogies
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.math.vectors import unit


def anisotropy(e: Tensor) -> Tensor:
    """Mean cosine over all pairs of different rows."""
    n = len(e)
    if n < 2:
        raise ValueError(f"{n} row has no pairs; give at least 2")
    u = unit(e)
    return (u.sum(0).square().sum() - u.square().sum()) / (n * (n - 1))


def center_rows(e: Tensor) -> Tensor:
    """The rows minus their mean."""
    return e - e.mean(dim=0)


def components(e: Tensor, k: int) -> Tensor:
    """The first k principal directions (k, d), each with its largest entry positive."""
    v = torch.linalg.svd(center_rows(e), full_matrices=False).Vh[:k]
    return v * v.gather(1, v.abs().argmax(dim=1, keepdim=True)).sign()


def without_top(e: Tensor, k: int) -> Tensor:
    """Centred, and without the first k principal components."""
    v, c = components(e, k), center_rows(e)
    return c - c @ v.mT @ v


def flat_map(e: Tensor) -> Tensor:
    """(n, d) -> (n, 2): the first two principal components."""
    return center_rows(e) @ components(e, 2).mT


def mean_direction(a: Tensor, b: Tensor) -> Tensor:
    """The unit vector along the mean of b − a over pairs (n, d)."""
    return unit((b - a).mean(dim=0))


def principal_direction(a: Tensor, b: Tensor) -> Tensor:
    """The first principal component of the differences b − a (not centred), pointing from a to b."""
    difference = b - a
    v = torch.linalg.svd(difference, full_matrices=False).Vh[0]
    return v if (difference @ v).sum() >= 0 else -v


def projection(e: Tensor, direction: Tensor) -> Tensor:
    """How far each row goes along a direction."""
    return e @ unit(direction)


def class_contrast(e: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cosine of different rows of one class, and of rows of different classes."""
    u = unit(e)
    cosine = u @ u.mT
    same = classes[:, None] == classes
    other_row = ~torch.eye(len(e), dtype=torch.bool)
    return cosine[same & other_row].mean(), cosine[~same].mean()
