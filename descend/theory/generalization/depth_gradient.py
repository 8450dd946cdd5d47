"""Vanishing and exploding gradients in a deep feedforward net: a product with one factor for each layer.

    δ_l = (W_{l+1}ᵀ δ_{l+1}) ⊙ σ'(z_l)
    δ_1 = D_1 W_2ᵀ D_2 W_3ᵀ … D_{L−1} W_Lᵀ δ_L         D_l = diag σ'(z_l)
    ‖δ_1‖ ≤ Π_{l=2..L} (max σ' · ‖W_l‖) ‖δ_L‖          sigmoid: max σ' = 1/4, at 0
    y = W_L … W_1 x, every factor f                     f^L: 0.5^20 ≈ 10⁻⁶, 1.5^20 ≈ 3325

Errata. MF (5.32) prints Π_{l=2..L} W_lᵀ D_l δ_L: the diagonals are shifted by one, so that D_1 is missing and D_L,
which is in δ_L already, counts twice (`delta_as_printed`). DLN says that gradients do not explode with sigmoids; the
factor is w σ', above 1 for |w| > 4 near z = 0, e.g. 8 · 1/4 = 2 a layer. DLN prints σ'(x) for σ'(z).

Systems: vanishing-exploding-in-depth
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

SIGMOID_SLOPE = 0.25
"""max σ' = σ'(0)"""


def sigmoid_bound(layers: int, weight: float = 1.0) -> float:
    """(|w|/4)^L: the most that is left of a gradient after L sigmoid layers with weights of this norm."""
    return (SIGMOID_SLOPE * abs(weight)) ** layers


def chain(factor: float, layers: int) -> float:
    """f^L."""
    return float(factor**layers)


def first_delta(weights: Sequence[Tensor], slopes: Sequence[Tensor], last: Tensor) -> Tensor:
    """δ_1 from W_2 … W_L, the slopes σ'(z_1) … σ'(z_{L−1}) and δ_L."""
    delta = last
    for weight, slope in zip(reversed(weights), reversed(slopes), strict=True):
        delta = slope * (weight.T @ delta)
    return delta


def delta_as_printed(weights: Sequence[Tensor], slopes: Sequence[Tensor], last: Tensor) -> Tensor:
    """MF (5.32) to the letter, which is wrong: W_2 … W_L, the slopes σ'(z_2) … σ'(z_L) and δ_L."""
    delta = last
    for weight, slope in zip(reversed(weights), reversed(slopes), strict=True):
        delta = weight.T @ (slope * delta)
    return delta


def norm_bound(weights: Sequence[Tensor], slope: float, last: Tensor) -> Tensor:
    """Π (max σ' ‖W_l‖₂) ‖δ_L‖."""
    factor = math.prod(slope * float(torch.linalg.matrix_norm(weight, 2)) for weight in weights)
    return factor * last.norm()
