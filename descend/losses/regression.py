"""Losses of regression; one value for each output, never reduced (see `risk`). r = ŷ − y.

    squared      r²                                              minimised by the mean; ∂/∂ŷ = 2r fades with the error
    half         ½ r²                                            ∂/∂ŷ = r
    of vectors   ‖ŷ − y‖² = Σ_k r_k²                             MF: the SUM over the K outputs (torch's mean is 1/K)
    absolute     |r|                                             minimised by the median; ∂/∂ŷ = sign r, of one size
    Huber        ½ r² for |r| ≤ δ, else δ (|r| − δ/2)            ∂/∂ŷ = r, or δ sign r
    smooth L1    ½ r²/β for |r| < β, else |r| − β/2              = Huber with δ = β, divided by β
    Gaussian     −log N(y; ŷ, σ²) = ½ log 2πσ² + r²/(2σ²)        Σ = N/2 log 2πσ² + N/(2σ²) MSE

Maximum likelihood: with Gaussian noise of fixed σ the negative log-likelihood is an increasing straight line in the
MSE, so both have the same arg min; the printed "min MSE = max log L" (DLN) is an equality of arguments, not of values.
With a softmax (or σ) model the negative log-likelihood is the sum of the cross-entropies exactly (`classification`).

Systems: mse-loss, l1-loss, huber-and-smooth-l1, losses-as-maximum-likelihood
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.checks import same_shape
from descend.losses.risk import per_example


def squared_error(yhat: Tensor, y: Tensor) -> Tensor:
    """(ŷ − y)² of each output; its mean is the MSE."""
    same_shape(yhat, y)
    return F.mse_loss(yhat, y, reduction="none")


def half_squared_error(yhat: Tensor, y: Tensor) -> Tensor:
    """½ (ŷ − y)² of each output."""
    return 0.5 * squared_error(yhat, y)


def squared_distance(yhat: Tensor, y: Tensor) -> Tensor:
    """‖ŷ − y‖² of each example: (b, ..) -> (b)."""
    return per_example(squared_error(yhat, y))


def absolute_error(yhat: Tensor, y: Tensor) -> Tensor:
    """|ŷ − y| of each output; its mean is the MAE."""
    same_shape(yhat, y)
    return F.l1_loss(yhat, y, reduction="none")


def huber(yhat: Tensor, y: Tensor, delta: float = 1.0) -> Tensor:
    """½ r² where |r| ≤ δ, else δ (|r| − δ/2)."""
    same_shape(yhat, y)
    positive("delta", delta)
    return F.huber_loss(yhat, y, reduction="none", delta=delta)


def smooth_l1(yhat: Tensor, y: Tensor, beta: float = 1.0) -> Tensor:
    """½ r²/β where |r| < β, else |r| − β/2."""
    same_shape(yhat, y)
    positive("beta", beta)
    return F.smooth_l1_loss(yhat, y, reduction="none", beta=beta)


def gaussian_nll(yhat: Tensor, y: Tensor, sigma2: float) -> Tensor:
    """−log N(y; ŷ, σ²) of each output, for noise of known variance σ²."""
    positive("sigma2", sigma2)
    return squared_error(yhat, y) / (2 * sigma2) + 0.5 * math.log(2 * math.pi * sigma2)


def positive(name: str, value: float) -> None:
    if not value > 0:
        raise Mistake(f"{name} {value}: give a number above 0")
