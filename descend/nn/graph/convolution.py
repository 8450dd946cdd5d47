"""Graph convolution (GCN) in its three forms: neighbours are averaged, and mapped by one matrix for all nodes.

    mean         h'_v = W Σ_{u ∈ N(v)} h_u / |N(v)| + B h_v                   D⁻¹ A H Wᵀ + H Bᵀ
    symmetric    h'_v = W Σ_{u ∈ N(v)} h_u / √(|N(u)| |N(v)|) + B h_v         D^{-½} A D^{-½} H Wᵀ + H Bᵀ
    Kipf         h'_v = W Σ_{u ∈ N(v) ∪ {v}} h_u / √(d̃_u d̃_v)                 D̃^{-½} (A + I) D̃^{-½} H Wᵀ

DLN has the first two, N(v) without v and a matrix B for the node itself, and calls the second the original; the
original is the third (S940): a loop at every node, its degrees d̃ = |N| + 1, one matrix. None has a bias. The
nonlinearity f is the model's. A node without neighbours hears only itself. The eigenvalues of the third lie in (−1,
1].

W comes first, so that only its few outputs travel along the edges. On directed edges, degrees count what arrives.

Systems: gcn
"""

from __future__ import annotations

from torch import Tensor, nn

from descend.nn.graph.features import FeatureLinear
from descend.ops.graph.aggregate import mean_neighbours, sum_neighbours
from descend.ops.graph.structure import Links


class MeanConvolution(nn.Module):
    """Nodes (n, inputs) -> (n, outputs); dropout on what it reads."""

    def __init__(self, inputs: int, outputs: int, dropout: float = 0.0):
        super().__init__()
        self.neighbours = FeatureLinear(inputs, outputs, dropout=dropout)
        self.own = FeatureLinear(inputs, outputs, dropout=dropout)

    def forward(self, x: Tensor, links: Links) -> Tensor:
        return mean_neighbours(self.neighbours(x), links) + self.own(x)


class SymmetricConvolution(nn.Module):
    """Nodes (n, inputs) -> (n, outputs); dropout on what it reads."""

    def __init__(self, inputs: int, outputs: int, dropout: float = 0.0):
        super().__init__()
        self.neighbours = FeatureLinear(inputs, outputs, dropout=dropout)
        self.own = FeatureLinear(inputs, outputs, dropout=dropout)

    def forward(self, x: Tensor, links: Links) -> Tensor:
        h = self.neighbours(x)
        return sum_neighbours(h, links, links.balance.to(h.dtype)) + self.own(x)


class KipfConvolution(nn.Module):
    """Nodes (n, inputs) -> (n, outputs); dropout on what it reads."""

    def __init__(self, inputs: int, outputs: int, dropout: float = 0.0):
        super().__init__()
        self.linear = FeatureLinear(inputs, outputs, dropout=dropout)

    def forward(self, x: Tensor, links: Links) -> Tensor:
        h = self.linear(x)
        return sum_neighbours(h, links.looped, links.looped.balance.to(h.dtype))
