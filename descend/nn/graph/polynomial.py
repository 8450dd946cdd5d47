"""Filters with learned coefficients: how much of each degree of the Laplacian, from which channel to which.

    polynomial    y = Σ_{i=0}^d Lⁱ x W_i + b
    Chebyshev     y = Σ_{i=0}^d T_i(L̃) x W_i + b          L̃ = 2 L / λ_max − I        ChebNet's layer
    shared        y = Σ_{i=0}^d w_i Lⁱ x                   the same d + 1 numbers for every channel

Row-batched: x (n, in), W_i (in, out); the books write one channel as a column. The numbers do not depend on the graph:
(d + 1) · in · out, and d + 1 for one channel. A layer of degree d reaches d hops.

Systems: polynomial-graph-filter, chebnet
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from descend.nn.graph.features import FeatureLinear
from descend.ops.graph.laplacian import Build, Kept, Operator, Scaled, bound_eigenvalues, symmetric_laplacian
from descend.ops.graph.polynomial import sum_chebyshev, sum_powers
from descend.ops.graph.structure import Links

Sum = Callable[[Operator, Sequence[Tensor]], Tensor]


class MatrixFilter(nn.Module):
    """Nodes (n, inputs) -> (n, outputs), a matrix for each degree; dropout on what it reads."""

    def __init__(self, inputs: int, outputs: int, degree: int, matrix: Build, total: Sum, bias: bool, dropout: float):
        super().__init__()
        self.matrix, self.total, self.outputs = Kept(matrix), total, outputs
        self.maps = FeatureLinear(inputs, (degree + 1) * outputs, dropout=dropout)
        """W_0 .. W_d, one under the other."""
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        for w in self.maps.weight.detach().split(outputs):
            nn.init.xavier_uniform_(w)

    def forward(self, x: Tensor, links: Links) -> Tensor:
        parts = self.maps(x).split(self.outputs, dim=1)
        y = self.total(self.matrix(links, parts[0].dtype), parts)
        return y if self.bias is None else y + self.bias


class PolynomialFilter(MatrixFilter):
    """y = Σ_i Lⁱ x W_i + b"""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        degree: int,
        laplacian: Build = symmetric_laplacian,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__(inputs, outputs, degree, laplacian, sum_powers, bias, dropout)


class ChebyshevFilter(MatrixFilter):
    """y = Σ_i T_i(L̃) x W_i + b; `largest` finds λ_max."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        degree: int,
        laplacian: Build = symmetric_laplacian,
        largest: Callable[[Operator], Tensor] = bound_eigenvalues,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__(inputs, outputs, degree, Scaled(laplacian, largest), sum_chebyshev, bias, dropout)


class SharedFilter(nn.Module):
    """y = Σ_i w_i Lⁱ x for each channel by itself; it begins as the identity, w = (1, 0, .., 0)."""

    def __init__(self, degree: int, laplacian: Build = symmetric_laplacian):
        super().__init__()
        self.matrix = Kept(laplacian)
        self.weight = nn.Parameter(torch.eye(degree + 1)[0].clone())

    def forward(self, x: Tensor, links: Links) -> Tensor:
        return sum_powers(self.matrix(links, x.dtype), [w * x for w in self.weight])
