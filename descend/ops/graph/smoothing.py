"""Over-smoothing: what repeated averaging over neighbours leaves of the differences between nodes.

    Â = D̃^(−1/2) (A + I) D̃^(−1/2) = I − L̃_sym        D̃ = D + I
    Âᵏ H → u uᵀ H,  u = D̃^(1/2) 1 / ‖D̃^(1/2) 1‖        ‖Âᵏ H − u uᵀ H‖ shrinks as |λ₂|ᵏ

λ₂ is the second largest eigenvalue of Â in magnitude; 1 is the largest, once for each component. On a connected graph
nothing is left in the end but a multiple of √(degree + 1).

    Dirichlet energy    E(H) = tr(Hᵀ L̃_sym H) = ½ Σ_{u, v} Ã_uv ‖h_u / √D̃_u − h_v / √D̃_v‖²
    mean distance       of the vectors of two nodes of a graph

Systems: over-smoothing
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.graph.aggregate import sum_groups
from descend.ops.graph.laplacian import symmetric_laplacian
from descend.ops.graph.structure import Links


def smooth(x: Tensor, links: Links, times: int = 1) -> Tensor:
    """Âᵏ x (n, d)"""
    matrix = symmetric_laplacian(links.looped, x.dtype)
    for _ in range(times):
        x = x - matrix @ x
    return x


def smoothing_rate(links: Links) -> float:
    """|λ₂| of Â, of one undirected graph: 1 where it falls into several components."""
    n = links.n
    matrix = torch.eye(n, dtype=torch.float64, device=links.source.device)
    matrix = matrix - symmetric_laplacian(links.looped, torch.float64).dense()
    return float(torch.linalg.eigvalsh(matrix).abs().sort().values[-2]) if n > 1 else 0.0


def distance_to_limit(x: Tensor, links: Links) -> Tensor:
    """‖x − u uᵀ x‖ of one connected graph."""
    u = (links.degree + 1).to(x.dtype).sqrt()
    u = u / u.norm()
    return (x - torch.outer(u, u @ x)).norm()


def dirichlet_energy(x: Tensor, links: Links) -> Tensor:
    """tr(xᵀ L̃_sym x) of each graph (g)."""
    energy = (x * (symmetric_laplacian(links.looped, x.dtype) @ x)).sum(dim=1)
    return sum_groups(energy, links.owner, links.graphs)


def mean_distance(x: Tensor) -> Tensor:
    """Σ_{u ≠ v} ‖x_u − x_v‖ / (n (n − 1)) of one graph."""
    return torch.pdist(x).mean()
