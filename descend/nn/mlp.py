"""The position-wise feed-forward network of a transformer block.

    MLP(x) = W_2 φ(W_1 x + b_1) + b_2          W_1: d -> hidden,  W_2: hidden -> d

Systems: position-wise-ffn
"""

from __future__ import annotations

from torch import Tensor, nn


class MLP(nn.Module):
    """Two linear maps around an activation, applied to every position alone."""

    def __init__(self, width: int, hidden: int, activation: nn.Module):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.activation = activation
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))

    def active_units(self, x: Tensor) -> Tensor:
        """Which hidden units speak for which position: φ(W_1 x + b_1) > 0, (.., hidden)."""
        return self.activation(self.up(x)) > 0
