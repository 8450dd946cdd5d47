"""Filters of node values: polynomials of the Laplacian, by sparse products alone.

    powers        p_w(L) x = Σ_{i=0}^d w_i Lⁱ x
    Chebyshev     p_w(L̃) x = Σ_{i=0}^d w_i T_i(L̃) x        T_0 = I, T_1 = L̃, T_{i+1} = 2 L̃ T_i − T_{i−1}
    a layer       Σ_i Lⁱ x W_i = Σ_i Lⁱ (x W_i)             first to the width of the outputs, then along the edges

For an eigenvector of L with eigenvalue λ the filter is the number p_w(λ), its frequency response. On [−1, 1] it is
T_i(λ) = cos(i arccos λ), which stays in [−1, 1]; powers of L grow like λ_maxⁱ.

Locality: (Lⁱ)_vu = 0 where the distance of v and u is above i, so a filter of degree d reaches d hops. Erratum: DLN
prints "above 1". What its demonstration filters do: 0.1 L weighs the node itself by 0.1 D_v and each neighbour by −0.1
(not only neighbours by 0.1); 0.01 L² reaches two hops and weighs the node and its neighbours most.

Systems: polynomial-graph-filter, chebnet
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from descend.ops.graph.laplacian import Operator
from descend.ops.graph.paths import distances

Terms = Callable[[Operator, Tensor, int], list[Tensor]]
"""The terms of degree 0..d that a filter weighs: matrix, x (n, c), d -> d + 1 of (n, c)."""


def powers(matrix: Operator, x: Tensor, degree: int) -> list[Tensor]:
    """x, M x, .., M^d x"""
    terms = [x]
    for _ in range(degree):
        terms.append(matrix @ terms[-1])
    return terms


def chebyshev(matrix: Operator, x: Tensor, degree: int) -> list[Tensor]:
    """T_0(M) x, .., T_d(M) x by the recurrence, on vectors; no T_i is written out."""
    terms = [x, matrix @ x][: degree + 1]
    for _ in range(degree - 1):
        terms.append(2 * (matrix @ terms[-1]) - terms[-2])
    return terms


def filter_nodes(terms: Sequence[Tensor], w: Tensor) -> Tensor:
    """Σ_i w_i term_i with w (d + 1), the same for every channel, or (d + 1, c), one filter for each channel."""
    return torch.stack([term * weight for term, weight in zip(terms, w, strict=True)]).sum(dim=0)


def sum_powers(matrix: Operator, parts: Sequence[Tensor]) -> Tensor:
    """Σ_i Mⁱ part_i by Horner's rule: d products, as wide as the parts."""
    total = parts[-1]
    for part in reversed(parts[:-1]):
        total = part + matrix @ total
    return total


def sum_chebyshev(matrix: Operator, parts: Sequence[Tensor]) -> Tensor:
    """Σ_i T_i(M) part_i by Clenshaw's rule: u_i = part_i + 2 M u_{i+1} − u_{i+2}, and part_0 + M u_1 − u_2."""
    if len(parts) == 1:
        return parts[0]
    later, total = torch.zeros_like(parts[-1]), parts[-1]
    for part in reversed(parts[1:-1]):
        later, total = total, part + 2 * (matrix @ total) - later
    return parts[0] + matrix @ total - later


def respond(w: Tensor, frequency: Tensor) -> Tensor:
    """p_w(λ) = Σ_i w_i λⁱ for each λ."""
    return (w * frequency[..., None] ** torch.arange(len(w), device=w.device)).sum(dim=-1)


def respond_chebyshev(w: Tensor, frequency: Tensor) -> Tensor:
    """p_w(λ) = Σ_i w_i cos(i arccos λ) for each λ in [−1, 1]."""
    return (w * torch.cos(torch.arange(len(w), device=w.device) * frequency.arccos()[..., None])).sum(dim=-1)


def reach(matrix: Operator, terms: Terms, w: Tensor) -> int:
    """How many hops a filter reaches: the largest distance of two nodes of which one hears the other."""
    links = matrix.links
    nodes = torch.arange(links.n, device=links.source.device)
    each = filter_nodes(terms(matrix, torch.eye(links.n, dtype=matrix.own.dtype, device=nodes.device), len(w) - 1), w)
    return int(distances(links, nodes)[each != 0].max())
