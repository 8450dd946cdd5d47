"""Losses of segmentation: a class for every pixel; one value for each image, never reduced further (see `risk`).

    cross-entropy   ℓ_p = −log softmax(z_p)_{y_p}        of image i: (1/n) Σ_p w_{y_p} ℓ_p, n its pixels that count
    soft Dice       D_k = (2 Σ_p p_k g_k + s) / (Σ_p p_k + Σ_p g_k + s)        loss 1 − (1/K) Σ_k D_k

p = softmax(z) over the classes, g the truth as one-hot, s a smoothing that makes an absent class cost nothing. A pixel
labelled VOID does not count, in either. With all w = 1 and no VOID the mean over images is the cross-entropy of the
flattened pixels. The Dice loss is a ratio of areas, so a small object weighs as much as a large one.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.checks import extremes, refuse

VOID = 255  # the label of pixels that do not count, as PNG masks have it


def check_masks(logits: Tensor, y: Tensor) -> None:
    """Logits (b, k, h, w) need whole numbers y (b, h, w) below k, or VOID."""
    b, classes, *size = logits.shape
    if y.shape != (b, *size):
        raise Mistake(f"logits {tuple(logits.shape)} need masks {(b, *size)}, not {tuple(y.shape)}")
    _, high = extremes(torch.where(y == VOID, 0, y))
    if classes <= high < float("inf"):
        refuse((y >= classes) & (y != VOID), y, f"class {{}} is not one of 0 to {classes - 1}, nor {VOID} for no class")


def pixel_cross_entropy(logits: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """w_{y_p} ℓ_p of every pixel, 0 where it does not count: logits (b, k, h, w), masks y (b, h, w) -> (b, h, w)."""
    check_masks(logits, y)
    return F.cross_entropy(logits, y.long(), weight, ignore_index=VOID, reduction="none")


def mask_cross_entropy(logits: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """(1/n) Σ_p w_{y_p} ℓ_p of each image (b); 0 for an image without a pixel that counts."""
    counted = (y != VOID).sum(dim=(1, 2)).clamp(min=1)
    return pixel_cross_entropy(logits, y, weight).sum(dim=(1, 2)) / counted


def dice_loss(logits: Tensor, y: Tensor, smooth: float = 1.0) -> Tensor:
    """1 − (1/K) Σ_k D_k of each image (b)."""
    check_masks(logits, y)
    counts = (y != VOID)[:, None]
    p = logits.softmax(dim=1) * counts
    g = (y[:, None] == torch.arange(logits.shape[1], device=y.device)[:, None, None]) & counts
    both = torch.where(g, p, 0).sum(dim=(2, 3))
    shares = (2 * both + smooth) / (p.sum(dim=(2, 3)) + g.sum(dim=(2, 3)) + smooth)
    return 1 - shares.mean(dim=1)
