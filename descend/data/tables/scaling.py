"""Scaling of features, with statistics of the training part only.

    standardize   x' = (x − μ) / σ        μ_j = (1/n) Σ_i x_ij        σ_j² = (1/n) Σ_i (x_ij − μ_j)²    (1/n, no ε)
    min-max       x' = lo + (hi − lo) (x − min) / (max − min)                               (0..1 by default)
    PCA whitening x' = Λ^{−1/2} Vᵀ (x − μ)        cov = V Λ Vᵀ, the smallest eigenvalues left out        cov(x') = I

`fit` asks which part it is given and refuses any but the training part: statistics of the test part would let the test
examples shape the model that they judge (MF 14.1.3). A constant feature keeps its scale (σ = 1), or becomes `lo`.
Examples are rows (n, d); MF writes x_ij with the feature first. Whitening makes the error surface of a linear neuron
round: the Hessian 2 E[x xᵀ] of its mean squared error becomes 2 I.

Systems: standardization, min-max-scaling, pca-whitening
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ranges import Finite

Part = Literal["train", "valid", "test"]


def only_training(part: Part, what: str) -> None:
    """Statistics belong to the training part."""
    if part != "train":
        raise Mistake(f"{what} was asked to fit on the {part} part: that leaks it into training; fit on the train part")


def some(x: Tensor, what: str) -> None:
    if x.dim() != 2 or not len(x) or not x.isfinite().all():
        raise Mistake(f"{what} needs rows of finite numbers (n, d), not shape {tuple(x.shape)}; fill missing values in")


@dataclass(frozen=True)
class Standardize:
    """x' = (x − μ) / σ of each feature."""

    mean: Tensor
    std: Tensor

    @classmethod
    def fit(cls, x: Tensor, part: Part) -> Standardize:
        """μ and σ of the training rows (n, d)."""
        only_training(part, "standardization")
        some(x, "standardization")
        std = x.std(dim=0, correction=0)
        constant = x.amax(dim=0) == x.amin(dim=0)  # σ of a constant may be a rounding error instead of 0
        return cls(x.mean(dim=0), torch.where(constant, torch.ones_like(std), std))

    def __call__(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std

    def inverse(self, x: Tensor) -> Tensor:
        """x = σ x' + μ"""
        return x * self.std + self.mean


@dataclass(frozen=True)
class MinMax:
    """From min..max of the training rows to lo..hi; other rows may fall outside."""

    min: Tensor
    max: Tensor
    lo: Finite = 0.0
    hi: Finite = 1.0

    @classmethod
    def fit(cls, x: Tensor, part: Part, lo: float = 0.0, hi: float = 1.0) -> MinMax:
        """The smallest and the largest value of each feature (n, d)."""
        only_training(part, "min-max scaling")
        some(x, "min-max scaling")
        if not lo < hi:
            raise Mistake(f"min-max scaling to {lo}..{hi}: the range needs lo < hi")
        return cls(x.amin(dim=0), x.amax(dim=0), lo, hi)

    @property
    def span(self) -> Tensor:
        """max − min; 1 for a constant feature."""
        return torch.where(self.max > self.min, self.max - self.min, torch.ones_like(self.max))

    def __call__(self, x: Tensor) -> Tensor:
        return self.lo + (self.hi - self.lo) * (x - self.min) / self.span

    def inverse(self, x: Tensor) -> Tensor:
        """Back to the feature's own range."""
        return self.min + self.span * (x - self.lo) / (self.hi - self.lo)


@dataclass(frozen=True)
class Whiten:
    """x' = Λ^{−1/2} Vᵀ (x − μ): as many numbers as components were kept, largest variance first."""

    mean: Tensor
    variances: Tensor
    """Λ (k)."""
    components: Tensor
    """V (d, k)."""

    @classmethod
    def fit(cls, x: Tensor, part: Part, keep: int = 0) -> Whiten:
        """Principal components of the training rows (n, d); keep 0: all that are not a rounding error."""
        only_training(part, "whitening")
        some(x, "whitening")
        mean = x.mean(dim=0)
        _, singular, vt = torch.linalg.svd(x - mean, full_matrices=False)
        variances = singular**2 / len(x)
        real = int((singular > singular[0] * max(x.shape) * torch.finfo(x.dtype).eps).sum())
        if not 0 <= keep <= real:
            raise Mistake(f"whitening cannot keep {keep} components: these rows vary in {real} directions; keep fewer")
        k = keep or real
        return cls(mean, variances[:k], vt[:k].T)

    @classmethod
    def fit_share(cls, x: Tensor, part: Part, share: float) -> Whiten:
        """The fewest components that hold this share of the variance, e.g. 0.99."""
        whole = cls.fit(x, part)
        held = whole.variances.cumsum(0) / whole.variances.sum()
        k = min(int((held < share).sum()) + 1, len(held))
        return cls(whole.mean, whole.variances[:k], whole.components[:, :k])

    def __call__(self, x: Tensor) -> Tensor:
        return (x - self.mean) @ self.components / self.variances.sqrt()

    def inverse(self, x: Tensor) -> Tensor:
        """The nearest point of the kept directions; the same point when all were kept."""
        return x * self.variances.sqrt() @ self.components.T + self.mean


def covariance(x: Tensor) -> Tensor:
    """(1/n) Σ_i (x_i − μ)(x_i − μ)ᵀ of rows (n, d)."""
    centred = x - x.mean(dim=0)
    return centred.T @ centred / len(x)


def error_surface(x: Tensor) -> Tensor:
    """2 E[x xᵀ]: the Hessian of a linear neuron's mean squared error; its condition number tells how long the valley
    is that gradient descent has to follow."""
    return 2 * x.T @ x / len(x)
