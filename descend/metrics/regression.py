"""How far predictions ŷ are from numbers y, in y's own unit.

MAE    (1/n) Σ_i |ŷ_i − y_i|                              what one is wrong by, on average
RMSE   √((1/n) Σ_i (ŷ_i − y_i)²)                          the same, but large errors weigh more
R²     1 − Σ_i (ŷ_i − y_i)² / Σ_i (y_i − ȳ)²              share of the variance explained: 1 is perfect, 0 is
                                                          what guessing the mean ȳ gets, below 0 is worse than that
"""

from __future__ import annotations

import math

from torch import Tensor


def mean_absolute_error(predicted: Tensor, y: Tensor) -> float:
    return (predicted.double() - y.double()).abs().mean().item()


def root_mean_squared_error(predicted: Tensor, y: Tensor) -> float:
    return (predicted.double() - y.double()).square().mean().sqrt().item()


def r_squared(predicted: Tensor, y: Tensor) -> float:
    """NaN where all y are equal: there is no variance to explain."""
    y = y.double()
    left, all_of_it = (predicted.double() - y).square().sum().item(), (y - y.mean()).square().sum().item()
    return 1 - left / all_of_it if all_of_it else math.nan
