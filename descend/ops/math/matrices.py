"""Matrices: products in two views, size, linearity, and what a matrix keeps or loses.

    row view       y_i = Σ_j a_ij x_j          row i of A dotted with x
    column view    y = Σ_j x_j a_j             the columns of A, mixed by x
    product        c_ij = row_i(A)·col_j(B)    C = Σ_k a_k b_kᵀ        (AB)ᵀ = BᵀAᵀ,  AB ≠ BA in general
    Frobenius      ‖A‖_F = √(Σ a_ij²) = √(trace AᵀA) = √(Σ σ_i²)

    f is linear when f(a u + b v) = a f(u) + b f(v): scaling and addition; then f(0) = 0. A constant shift is affine.

    coordinates    c with [b_1 … b_n] c = v                   unique when the b_i are a basis
    rank           dimension of the image {A x};  rank + nullity = number of inputs
    null space     {x : A x = 0};  x and x + null vector collide: A sends them to one output

Rank is a decision on floats: a singular value counts above max(m, n)·ε·σ_max. `ops.exact` decides it without rounding.

Systems: matrix-products, linearity-test, basis-rank-and-null-space
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]
TOLERANCE = 1e-9  # of an equality that holds except for rounding, in float64


# Products


def row_view(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The terms a_ij x_j (m, n), and y (m), their sums along the rows."""
    terms = a * x
    return terms, terms.sum(1)


def column_view(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The parts x_j a_j (n, m), one for each column of A, and y (m), their sum."""
    parts = x[:, None] * a.mT
    return parts, parts.sum(0)


def product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The terms a_ik b_kj (m, p, n), and C = AB (m, p): every row of A dotted with every column of B."""
    terms = a[:, None, :] * b.mT[None]
    return terms, terms.sum(-1)


def product_by_columns(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The parts a_k b_kᵀ (n, m, p), column k of A times row k of B, and C = AB (m, p), their sum."""
    parts = a.mT[:, :, None] * b[:, None, :]
    return parts, parts.sum(0)


def symmetric(a: Tensor) -> bool:
    """Aᵀ = A."""
    return a.shape[0] == a.shape[1] and torch.equal(a, a.mT)


def frobenius(a: Tensor) -> Tensor:
    """√(Σ_ij a_ij²)."""
    return a.square().sum((-2, -1)).sqrt()


def frobenius_by_trace(a: Tensor) -> Tensor:
    """√(trace AᵀA): the diagonal of AᵀA holds the squared lengths of the columns."""
    return (a.mT @ a).diagonal(dim1=-2, dim2=-1).sum(-1).sqrt()


def frobenius_by_singular_values(a: Tensor) -> Tensor:
    """√(Σ σ_i²): rotations do not change it."""
    return torch.linalg.svdvals(a).square().sum(-1).sqrt()


# Linearity


def scaling(f: Map, a: float, x: Tensor) -> tuple[Tensor, Tensor]:
    """f(a x) and a f(x): equal for a linear f; a = 0 asks whether f(0) = 0."""
    return f(a * x), a * f(x)


def addition(f: Map, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """f(u + v) and f(u) + f(v): equal for a linear f."""
    return f(u + v), f(u) + f(v)


def broken_linearity(f: Map, dim: int, seed: int = 0) -> tuple[str, ...]:
    """What f breaks at some probe: of "zero", "scaling", "addition"; () when it breaks nothing, so f seems linear.

    f takes (n, dim), a vector in each row. The factors have both signs: ReLU passes the positive ones.
    """
    random = torch.Generator().manual_seed(seed)
    u, v = torch.randn(2, 30, dim, generator=random, dtype=torch.float64)
    tests = {
        "zero": [scaling(f, 0.0, u)],
        "scaling": [scaling(f, a, u) for a in (2.0, 0.3, -1.0, -7.0)],
        "addition": [addition(f, u, v), addition(f, u, -u)],
    }
    size = max(f(u).abs().max().item(), f(v).abs().max().item())
    return tuple(
        name
        for name, sides in tests.items()
        if any(not torch.allclose(left, right, rtol=TOLERANCE, atol=10 * TOLERANCE * size) for left, right in sides)
    )


def is_linear(f: Map, dim: int) -> bool:
    """No probe breaks scaling or addition; `broken_linearity` says which."""
    return not broken_linearity(f, dim)


# Basis, rank, null space


def rank(a: Tensor) -> int:
    """How many singular values are not zero: the dimension of the image, the same for Aᵀ."""
    sigma = torch.linalg.svdvals(a)
    return int((sigma > max(a.shape) * torch.finfo(a.dtype).eps * sigma.max()).sum())


def independent(vectors: Tensor) -> bool:
    """Whether Σ c_i v_i = 0 forces every c_i = 0, for the rows v_i of (k, n)."""
    return rank(vectors) == len(vectors)


def invertible(a: Tensor) -> bool:
    """Square and of full rank."""
    return a.shape[0] == a.shape[1] == rank(a)


def coordinates(v: Tensor, basis: Tensor) -> Tensor:
    """c with Σ_i c_i b_i = v, for a basis in the rows of (n, n); v may be (.., n)."""
    if not invertible(basis):
        raise ValueError(f"the rows of {tuple(basis.shape)} are not a basis; give n independent vectors of n numbers")
    return torch.linalg.solve(basis.mT, v[..., None]).squeeze(-1)


def from_coordinates(c: Tensor, basis: Tensor) -> Tensor:
    """v = Σ_i c_i b_i: the same vector in the standard basis."""
    return c @ basis


def null_space(a: Tensor) -> Tensor:
    """An orthonormal basis of {x : A x = 0} in the rows of (nullity, n): the right singular vectors of σ = 0."""
    return torch.linalg.svd(a, full_matrices=True).Vh[rank(a) :]


def colliding(a: Tensor, x: Tensor) -> Tensor:
    """Other inputs with the image of x: x + every vector of the null space's basis, (nullity, n)."""
    return x + null_space(a)
