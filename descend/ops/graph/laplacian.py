"""The Laplacian of a graph, as a sparse operator: what a value at a node differs by from its neighbours.

    plain        L = D − A                      (L x)_v = D_v x_v − Σ_{u ∈ N(v)} x_u
    symmetric    L = I − D^(−1/2) A D^(−1/2)    eigenvalues in [0, 2]
    scaled       L̃ = 2 L / λ_max − I            eigenvalues in [−1, 1]; λ_max is that of each graph

Erratum: DLN prints (L x)_v = D_v x_u − Σ x_u; the node's own x_v is meant.

Rows of the plain one sum to 0, and both are positive semi-definite where every edge goes both ways. A node without
neighbours has a row of zeros, also in the symmetric form (as in networkx and scipy; PyG has a 1 on its diagonal), so
that the eigenvalue 0 is there once for each connected component. An edge from a node to itself counts in D and in A.

λ_max is exact (all eigenvalues, dense), or found by power iteration (sparse, for all graphs of a batch at once), or
replaced by a bound: λ_max ≤ 2 max_v L_vv.

Systems: graph-laplacian, chebnet
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from descend.ops.graph.aggregate import max_groups, sum_groups, sum_neighbours
from descend.ops.graph.structure import Links

STEPS, TOLERANCE, LEAST_STEPS = 1000, 1e-9, 20  # of the power iteration


@dataclass(frozen=True, eq=False)
class Operator:
    """M = diag(own) + Σ_k weight_k e_target(k) e_source(k)ᵀ: a matrix (n, n) that is never written out."""

    links: Links
    own: Tensor
    """The diagonal (n)."""
    weight: Tensor
    """Of the edges (e)."""

    def __matmul__(self, x: Tensor) -> Tensor:
        """M x of columns x (n, c)."""
        return self.own[:, None] * x + sum_neighbours(x, self.links, self.weight)

    def dense(self) -> Tensor:
        """M (n, n)"""
        n, at = self.links.n, self.links.target * self.links.n + self.links.source
        edges = self.weight.new_zeros(n * n).index_add(0, at, self.weight)
        return edges.view(n, n) + torch.diag(self.own)


def laplacian(links: Links, dtype: torch.dtype = torch.float32) -> Operator:
    """L = D − A"""
    return Operator(links, links.degree.to(dtype), torch.full_like(links.source, -1, dtype=dtype))


def symmetric_laplacian(links: Links, dtype: torch.dtype = torch.float32) -> Operator:
    """L = I − D^(−1/2) A D^(−1/2)"""
    return Operator(links, (links.degree > 0).to(dtype), -links.balance.to(dtype))


def scale(matrix: Operator, largest: Tensor) -> Operator:
    """L̃ = 2 L / λ_max − I with λ_max (g) of each graph; −I where L is 0."""
    factor = torch.where(largest > 0, 2 / largest, 0).to(matrix.own.dtype)
    links = matrix.links
    return Operator(links, matrix.own * factor[links.owner] - 1, matrix.weight * factor[links.edge_owner])


def bound_eigenvalues(matrix: Operator) -> Tensor:
    """2 max_v L_vv ≥ λ_max (g): 2 for the symmetric form, twice the largest degree for the plain one."""
    return 2 * max_groups(matrix.own, matrix.links.owner, matrix.links.graphs)


def largest_eigenvalues(matrix: Operator) -> Tensor:
    """λ_max (g) of each graph, from all its eigenvalues."""
    whole, sizes = matrix.dense(), matrix.links.sizes.tolist()
    if not torch.allclose(whole, whole.mT):
        raise ValueError("the Laplacian is not symmetric: give every edge in both directions")
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    blocks = [whole[i : i + n, i : i + n] for i, n in zip(starts, sizes, strict=True)]
    return torch.stack([torch.linalg.eigvalsh(block)[-1] if len(block) else block.new_zeros(()) for block in blocks])


@torch.no_grad()
def iterate_power(matrix: Operator, steps: int = STEPS, tolerance: float = TOLERANCE) -> Tensor:
    """λ_max (g) from below: x ← M x / ‖M x‖, λ = xᵀ M x, until no graph's λ moves by more than the tolerance."""
    links, matrix = matrix.links, Operator(matrix.links, matrix.own.double(), matrix.weight.double())
    x = torch.randn(links.n, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(matrix.own.device)
    found = matrix.own.new_zeros(links.graphs)
    for step in range(steps):
        norm = sum_groups(x.square()[:, 0], links.owner, links.graphs).sqrt()
        x = x / norm.clamp_min(torch.finfo(x.dtype).tiny)[links.owner][:, None]
        y = matrix @ x
        before, found = found, sum_groups((x * y)[:, 0], links.owner, links.graphs)
        if step >= LEAST_STEPS and bool(((found - before).abs() <= tolerance * found.abs()).all()):
            break
        x = y
    return found


Build = Callable[[Links, torch.dtype], Operator]


class Kept:
    """An operator of links, built once for as long as they are there: every layer and step asks for it."""

    def __init__(self, build: Build):
        self.build = build
        self.kept: WeakKeyDictionary[Links, dict[torch.dtype, tuple[Tensor, Tensor]]] = WeakKeyDictionary()

    def __call__(self, links: Links, dtype: torch.dtype) -> Operator:
        kept = self.kept.setdefault(links, {})
        if dtype not in kept:
            built = self.build(links, dtype)
            kept[dtype] = (built.own, built.weight)  # without the links, which would keep themselves
        return Operator(links, *kept[dtype])


@dataclass(frozen=True)
class Scaled:
    """links -> L̃, of a Laplacian and the way to its λ_max."""

    laplacian: Build
    largest: Callable[[Operator], Tensor]

    def __call__(self, links: Links, dtype: torch.dtype) -> Operator:
        matrix = self.laplacian(links, dtype)
        return scale(matrix, self.largest(matrix))


LAPLACIANS: dict[str, Build] = {"none": laplacian, "symmetric": symmetric_laplacian}
"""By the name of the normalization."""
EIGENVALUES: dict[str, Callable[[Operator], Tensor]] = {
    "bound": bound_eigenvalues,
    "exact": largest_eigenvalues,
    "power": iterate_power,
}
"""By how λ_max is found."""
