"""The Fréchet distance of two sets, as a network sees them: Gaussians are fitted to its features and compared.

    d²(N(μ₁, C₁), N(μ₂, C₂)) = ‖μ₁ − μ₂‖² + tr(C₁ + C₂ − 2 (C₁^½ C₂ C₁^½)^½)          C with 1 / (n − 1)

With the features of Inception-v3 this is the FID. Nothing here knows which network it is: any function of a batch that
gives vectors will do, and figures of different networks cannot be compared. It is 0 only where both moments agree. Few
examples bias it upwards: two samples of one distribution have a distance above 0 that falls with their number, so a
figure belongs to a number n of examples, and is best read beside that of real against real at the same n.

Systems: fid
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.errors import Mistake


def fid(x: Tensor, y: Tensor) -> float:
    """The Fréchet distance of features x (n, d) and y (m, d), refused where there are too few for their covariances.

    Systems: fid
    """
    few = min(len(x), len(y))
    if few <= x.shape[1]:
        raise Mistake(
            f"a Fréchet distance of {x.shape[1]} features needs more than {x.shape[1]} images of each kind, not {few}: "
            f"draw more samples, or compare by KID, which has no such limit"
        )
    return frechet_distance(x, y)


def frechet_distance(x: Tensor, y: Tensor) -> float:
    """d² of the Gaussians fitted to features x (n, d) and y (m, d)."""
    (mu, c), (nu, e) = (moments_of(z.double()) for z in (x, y))
    root = symmetric_root(c)
    return float((mu - nu).square().sum() + (c + e).trace() - 2 * symmetric_root(root @ e @ root).trace())


def moments_of(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (d) and covariance (d, d) of rows."""
    if x.dim() != 2 or len(x) < 2:
        raise ValueError(f"features of shape {tuple(x.shape)}; give at least two rows (n, d)")
    return x.mean(0), torch.cov(x.T).reshape(x.shape[1], x.shape[1])


def symmetric_root(c: Tensor) -> Tensor:
    """C^½ of a positive semi-definite matrix."""
    values, vectors = torch.linalg.eigh((c + c.mT) / 2)
    return (vectors * values.clamp(min=0).sqrt()) @ vectors.mT


@torch.no_grad()
def distance_of_images(features: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, batch: int = 64) -> float:
    """The same for images x (n, ..) and y (m, ..), through `features`, a batch at a time."""
    return frechet_distance(*(torch.cat([features(part) for part in images.split(batch)]) for images in (x, y)))
