"""What a square matrix does to space: the volume it scales, the directions it keeps, the lengths it keeps.

    determinant    2×2: ad − bc        3×3: a(ei − fh) − b(di − fg) + c(dh − eg)        n×n: Σ_σ sgn σ Π_i a_{i σ(i)}
                   signed factor of area or volume; 0 ⇔ not of full rank; negative ⇔ orientation reversed
    shoelace       area = ½ Σ_i (x_i y_{i+1} − x_{i+1} y_i), positive when the corners run counterclockwise (y upward)
    eigen          A v = λ v, v ≠ 0        det(λI − A) = 0        Σ λ = trace A,  Π λ = det A
    powers         x = Σ c_i v_i   ⇒   A^k x = Σ c_i λ_i^k v_i
    rotation       R(θ) = [[cos θ, −sin θ], [sin θ, cos θ]],  λ = e^{±iθ}: no real direction is kept unless θ = 0 or π
    reflection     H = I − 2 n nᵀ / nᵀn
    orthogonal     QᵀQ = I   ⇒   ‖Qv‖ = ‖v‖,  Qu·Qv = u·v,  det Q = +1 (rotation) or −1 (reflection)

Erratum: VOM 1.5.2 calls the corners (0,0), (1,0), (1,1), (0,1) clockwise. With the usual axes they run
counterclockwise, and clockwise after the reflection; the code follows the axes. "|A × A|" there stands for |u × v|, the
area of the parallelogram with sides u and v.
`ops.exact` has powers in whole numbers: A^100 is beyond the 16 digits of a float.

Systems: determinant-as-volume, eigendecomposition-and-powers, orthogonal-matrices
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import torch
from torch import Tensor

LARGEST = 8  # rows of a matrix whose determinant is expanded: n! terms


# Volume


def determinant(a: Tensor) -> Tensor:
    """Σ over all permutations σ of sgn σ Π a_{i σ(i)}, exact for whole numbers; for large matrices torch.linalg.det."""
    n = len(a)
    if a.shape != (n, n):
        raise ValueError(f"a {tuple(a.shape)} matrix has no determinant; give a square one")
    if n > LARGEST:
        raise ValueError(f"the expansion of {n} rows has {n}! terms; use torch.linalg.det above {LARGEST}")
    order = torch.tensor(list(permutations(range(n))))
    swapped = (order[:, :, None] > order[:, None, :]).triu(1).sum((1, 2))  # pairs out of order: an odd number flips
    return ((1 - 2 * (swapped % 2)) * a[torch.arange(n), order].prod(1)).sum()


def image(a: Tensor, points: Tensor) -> Tensor:
    """A x for every row x of the points (n, d)."""
    return points @ a.mT


def signed_area(corners: Tensor) -> Tensor:
    """The shoelace area of a polygon (n, 2): positive counterclockwise, negative clockwise."""
    x, y = corners.unbind(-1)
    return (x * y.roll(-1) - x.roll(-1) * y).sum() / 2


def orientation(corners: Tensor) -> str:
    """counterclockwise, clockwise, or flat when the polygon has no area (y axis upward)."""
    area = signed_area(corners)
    return "flat" if area == 0 else "counterclockwise" if area > 0 else "clockwise"


# Eigenvalues


def characteristic(a: Tensor) -> Tensor:
    """The coefficients of det(λI − A), highest power first: 1, −trace A, …, (−1)ⁿ det A (Faddeev–LeVerrier)."""
    n = len(a)
    identity = torch.eye(n, dtype=a.dtype)
    coefficients, m = [torch.ones((), dtype=a.dtype)], identity
    for k in range(1, n + 1):
        am = a @ m
        coefficients.append(-am.trace() / k)
        m = am + coefficients[-1] * identity
    return torch.stack(coefficients)


def eigen(a: Tensor) -> tuple[Tensor, Tensor]:
    """λ (n), complex, by falling |λ| and then falling imaginary part; unit eigenvectors in the COLUMNS of V (n, n)."""
    values, vectors = torch.linalg.eig(a)
    size = values.abs() / values.abs().max().clamp_min(torch.finfo(a.dtype).tiny)  # rounded: a pair has one size
    by_size = sorted(range(len(a)), key=lambda i: (-round(size[i].item(), 9), -values[i].imag.item()))
    return values[by_size], vectors[:, by_size]


def power_by_eigen(a: Tensor, x: Tensor, k: int) -> Tensor:
    """A^k x = Σ c_i λ_i^k v_i with x = Σ c_i v_i, for a real A that has n independent eigenvectors."""
    values, v = eigen(a)
    if int(torch.linalg.matrix_rank(v)) < len(a):
        raise ValueError("the eigenvectors do not form a basis (a defective matrix); multiply, or use ops.exact.power")
    c = torch.linalg.solve(v, x.to(v.dtype))
    return (v @ (c * values**k)).real


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues of a weight or attention matrix, and what repeated multiplication does."""

    values: Tensor
    radius: float
    """The largest |λ|: A^k grows as radius^k; above 1 signals explode, below 1 they vanish."""
    complex_pairs: int
    """Planes in which A rotates."""


def spectrum(a: Tensor) -> Spectrum:
    """Eigenvalues, spectral radius, complex pairs. Rows that sum to 1 (attention) have radius 1."""
    values, _ = eigen(a)
    radius = values.abs().max().item()
    rotating = values.imag > 1e-9 * max(radius, torch.finfo(a.dtype).tiny)
    return Spectrum(values, radius, int(rotating.sum()))


# Orthogonal matrices


def is_orthogonal(q: Tensor) -> bool:
    """QᵀQ = I and square, except for rounding."""
    n = len(q)
    if q.shape != (n, n):
        return False
    return bool((q.mT @ q - torch.eye(n, dtype=q.dtype)).abs().max() < 100 * n * torch.finfo(q.dtype).eps)


def rotation(angle: Tensor) -> Tensor:
    """R(θ), (2, 2): turns counterclockwise by θ radians."""
    c, s = angle.cos(), angle.sin()
    return torch.stack([torch.stack([c, -s]), torch.stack([s, c])])


def reflection(normal: Tensor) -> Tensor:
    """H = I − 2 n nᵀ / nᵀn: the mirror whose normal is n (Householder)."""
    squared = normal @ normal
    if squared == 0:
        raise ValueError("the zero vector cannot be the normal of a mirror; give a direction")
    return torch.eye(len(normal), dtype=normal.dtype) - 2 * torch.outer(normal, normal) / squared


def random_orthogonal(n: int, random: torch.Generator) -> Tensor:
    """(n, n): Q of a Gaussian matrix's QR, its signs fixed so that all orthogonal matrices are equally likely."""
    q, r = torch.linalg.qr(torch.randn(n, n, generator=random, dtype=torch.float64))
    return q * r.diagonal().sign()
