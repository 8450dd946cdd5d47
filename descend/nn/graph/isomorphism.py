"""Graph isomorphism layer (GIN): a sum over the neighbours that loses nothing, then a network that may be any function.

    h'_v = f( (1 + ε) h_v + Σ_{u ∈ N(v)} h_u )

A sum separates multisets that mean and max do not. f has two layers: one layer is not enough, since a linear map of
the sum and a nonlinearity do not separate all sums. ε is fixed (0: the node counts as a neighbour) or learned, one
for each layer.

Systems: gin
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.ops.graph.aggregate import sum_neighbours
from descend.ops.graph.structure import Links


class FixedEpsilon(nn.Module):
    """ε, a number of the configuration."""

    def __init__(self, value: float = 0.0):
        super().__init__()
        self.value = value

    def forward(self) -> float:
        return self.value


class LearnedEpsilon(nn.Module):
    """ε, a parameter."""

    def __init__(self, value: float = 0.0):
        super().__init__()
        self.value = nn.Parameter(torch.tensor(float(value)))

    def forward(self) -> Tensor:
        return self.value


class IsomorphismLayer(nn.Module):
    """Nodes (n, d) -> what f makes of them (n, ..)."""

    def __init__(self, f: nn.Module, epsilon: nn.Module):
        super().__init__()
        self.f, self.epsilon = f, epsilon

    def forward(self, x: Tensor, links: Links) -> Tensor:
        return self.f((1 + self.epsilon()) * x + sum_neighbours(x, links))


def make_injective(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """W_2 relu(norm(W_1 x + b_1)) + b_2, norm over the batch, as published."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, outputs))
