"""How well masks agree: all from the confusion of pixels, C[a, b] = pixels of class a that were called b.

    pixel accuracy   Σ_k C_kk / Σ C
    IoU_k            C_kk / (Σ_b C_kb + Σ_a C_ak − C_kk)                   intersection over union; Jaccard
    Dice_k           2 C_kk / (Σ_b C_kb + Σ_a C_ak) = 2 IoU / (1 + IoU)    the F₁ of the class
    mean IoU         the mean over the classes that occur, in the truth or in the answer

Over a set of images C is summed first: the mean of the images' own IoU is another number, in which a small object
counts as much as a large one. Pixels labelled VOID in the truth are left out.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from descend.errors import Mistake

VOID = 255  # as in `losses.segmentation`


def confusions(predicted: Tensor, y: Tensor, classes: int) -> Tensor:
    """C of each image (b, classes, classes) from masks (b, h, w); their sum over b is that of the set."""
    if predicted.shape != y.shape:
        raise Mistake(f"masks differ in shape: {tuple(predicted.shape)} and {tuple(y.shape)}")
    b, known = len(y), y != VOID
    cell = y.long() * classes + predicted.long() + torch.arange(b, device=y.device)[:, None, None] * classes**2
    if known.any() and not 0 <= int(y[known].max()) < classes:
        raise Mistake(f"class {int(y[known].max())} is not one of 0 to {classes - 1}, nor {VOID} for no class")
    return torch.bincount(cell[known], minlength=b * classes**2).view(b, classes, classes)


def areas(c: Tensor) -> tuple[Tensor, Tensor]:
    """Intersection and union of each class: C (.., k, k) -> (.., k) twice."""
    both = c.diagonal(dim1=-2, dim2=-1)
    return both, c.sum(dim=-1) + c.sum(dim=-2) - both


def pixel_accuracy(c: Tensor) -> Tensor:
    """Share of the pixels that have the right class: C (.., k, k) -> (..)."""
    return c.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / c.sum(dim=(-2, -1))


def iou(c: Tensor) -> Tensor:
    """Of each class: C (.., k, k) -> (.., k); NaN for a class that does not occur at all."""
    both, either = areas(c)
    return both / either


def dice(c: Tensor) -> Tensor:
    """Of each class: C (.., k, k) -> (.., k); NaN for a class that does not occur at all."""
    both, either = areas(c)
    return 2 * both / (either + both)


def mean_iou(c: Tensor) -> Tensor:
    """The mean over the classes that occur: C (.., k, k) -> (..)."""
    return iou(c).nanmean(dim=-1)


def near_boundary(y: Tensor, width: int = 1) -> Tensor:
    """Pixels with another class within `width` pixels, along a row, a column or a diagonal: (b, h, w) -> bool."""
    maps = y[:, None].float()
    side = 2 * width + 1
    high, low = (max_pool2d(m, side, stride=1, padding=width) for m in (maps, -maps))
    return (high + low)[:, 0] != 0
