"""How far an estimate moves at the k-th time that it is corrected.

    α_k = α_1 (1 + (k − 1)/τ)^−ω        about α_1 for τ times, then falling

For 1/2 < ω ≤ 1, Σ α_k = ∞ and Σ α_k² < ∞ (Robbins and Monro), and the estimate converges; ω = 0 is a constant rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from descend.ranges import Count, PositiveShare, Share


@dataclass(frozen=True)
class StepSize:
    """α_k = α_1 (1 + (k − 1)/τ)^−ω at the k-th visit of a pair."""

    first: PositiveShare = 1.0
    """α_1."""
    hold: Count = 1
    """τ: visits of a pair after which its rate has fallen by 2^−ω."""
    power: Share = 0.8
    """ω: above 1/2 the values converge, 0 is a constant rate."""

    def __call__(self, k: Tensor) -> Tensor:
        return self.first * (1 + (k.double() - 1) / self.hold) ** -self.power
