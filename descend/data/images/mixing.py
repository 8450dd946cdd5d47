"""Mixed examples: two images in one, with labels mixed in the same proportion.

    MixUp    x' = λ x_i + (1 − λ) x_j                          y' = λ y_i + (1 − λ) y_j          λ ~ Beta(a, a)
    CutMix   x' = x_i, with a rectangle of x_j pasted in       y' = λ' y_i + (1 − λ') y_j

CutMix wants a rectangle of a share 1 − λ of the area; cut off at the edges and rounded to pixels, it covers 1 − λ' of
it, and λ' is what the label gets. Labels are distributions (b, k) that sum to 1: use `losses.soft_cross_entropy`. DLN
only names both; the equations are those of Zhang et al. (2018) and Yun et al. (2019), with one λ for each image.

Systems: mixup-and-cutmix
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.data.images.augment import rectangles
from descend.errors import Mistake
from descend.ranges import Positive


def mixup(x: Tensor, y: Tensor, lam: Tensor, partner: Tensor) -> tuple[Tensor, Tensor]:
    """Images x (b, ..) and labels y (b, k) with those of `partner` (b), in the proportion λ (b)."""
    share = lam.view(-1, *[1] * (x.dim() - 1))
    return share * x + (1 - share) * x[partner], lam[:, None] * y + (1 - lam)[:, None] * y[partner]


def cutmix(x: Tensor, y: Tensor, lam: Tensor, partner: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    """Images x (b, c, h, w) with a rectangle of `partner` about `centre` (b, 2; −1..1), labels y (b, k) by its area."""
    pasted = rectangles(x.shape[-2], x.shape[-1], (1 - lam).sqrt(), centre)
    kept = 1 - pasted.to(y.dtype).mean((1, 2))[:, None]
    return torch.where(pasted[:, None], x[partner], x), kept * y + (1 - kept) * y[partner]


def proportions(n: int, a: float, random: torch.Generator) -> Tensor:
    """n draws of Beta(a, a), as G/(G + G') of two Gamma(a) draws."""
    if a <= 0:
        raise Mistake(f"mixing: a = {a}; Beta(a, a) needs a > 0")
    gamma = torch._standard_gamma(torch.full((2, n), a, dtype=torch.float64), generator=random)
    return (gamma[0] / gamma.sum(0)).to(torch.get_default_dtype())


@dataclass(frozen=True)
class MixUp:
    """A batch with itself in another order; a = 1: every proportion equally likely, small a: mostly one image."""

    a: Positive = 0.2

    def __call__(self, x: Tensor, y: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
        n = len(x)
        lam, partner = proportions(n, self.a, random), torch.randperm(n, generator=random)
        return mixup(x, y, lam.to(x), partner.to(x.device))


@dataclass(frozen=True)
class CutMix:
    """A batch with rectangles of itself in another order."""

    a: Positive = 1.0

    def __call__(self, x: Tensor, y: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
        n = len(x)
        lam, partner = proportions(n, self.a, random), torch.randperm(n, generator=random)
        centre = 2 * torch.rand(n, 2, generator=random) - 1
        return cutmix(x, y, lam.to(x), partner.to(x.device), centre.to(x))
