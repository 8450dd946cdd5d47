"""Vectors: length, distance, direction, and how two of them agree.

    ‖v‖_p = (Σ_i |v_i|^p)^{1/p}, p ≥ 1     ‖v‖_1 = Σ|v_i|     ‖v‖_2 = √(vᵀv)     ‖v‖_∞ = max|v_i| = lim_{p→∞} ‖v‖_p
    d(u, v) = ‖u − v‖                              v̂ = v / ‖v‖
    u·v = Σ_i u_i v_i = ‖u‖ ‖v‖ cos θ              cos θ = u·v / (‖u‖ ‖v‖)

    a norm:   f(v) > 0 unless v = 0,  f(0) = 0     f(a v) = |a| f(v)         f(u + v) ≤ f(u) + f(v)

cos θ ignores the lengths, so the order of neighbours by cosine can differ from the order by distance. The zero vector
has no direction: `unit` leaves it zero, its `cosine` with anything is 0, and its `angle` is an error.
A vector is the last axis, unless `dim` says otherwise; the axes before it are a batch.

Systems: vector-norms, dot-product-and-cosine
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Measure = Callable[[Tensor], Tensor]
TOLERANCE = 1e-9  # of an equality that holds except for rounding, in float64


def norm(v: Tensor, p: float = 2.0, dim: int = -1) -> Tensor:
    """‖v‖_p for p ≥ 1, also math.inf; the largest entry is taken out first, so that no power overflows."""
    if not p >= 1:
        raise ValueError(f"p = {p} gives no norm (the triangle inequality fails); use p ≥ 1")
    largest = v.abs().amax(dim, keepdim=True)
    if p == math.inf:
        return largest.squeeze(dim)
    scale = torch.where(largest > 0, largest, 1.0).detach()
    total = (v / scale).abs().pow(p).sum(dim)
    length = scale.squeeze(dim) * torch.where(total > 0, total, 1.0).pow(1 / p)
    return torch.where(total > 0, length, 0.0)  # at v = 0 the gradient is 0, one of the subgradients


def distance(u: Tensor, v: Tensor, p: float = 2.0) -> Tensor:
    """d(u, v) = ‖u − v‖_p."""
    return norm(u - v, p)


def unit(v: Tensor, p: float = 2.0, dim: int = -1) -> Tensor:
    """v̂ = v / ‖v‖_p along an axis; the zero vector stays zero."""
    length = norm(v, p, dim).unsqueeze(dim)
    return v / torch.where(length > 0, length, 1.0)


# The axioms of a norm


def homogeneity(f: Measure, a: float, v: Tensor) -> tuple[Tensor, Tensor]:
    """f(a v) and |a| f(v): the two sides that are equal for a norm."""
    return f(a * v), abs(a) * f(v)


def broken_axioms(f: Measure, dim: int, seed: int = 0) -> tuple[str, ...]:
    """The norm axioms that f breaks at some probe: of "positive", "homogeneous", "triangle"; () when none is found.

    f takes (n, dim) and returns (n). The probes: every e_i, every e_i − e_j, and random vectors of three sizes.
    """
    random = torch.Generator().manual_seed(seed)
    e = torch.eye(dim, dtype=torch.float64)
    noise = torch.randn(60, dim, generator=random, dtype=torch.float64)
    noise *= torch.tensor([0.1, 1.0, 10.0], dtype=torch.float64).repeat_interleave(20)[:, None]
    differences = (e[:, None] - e).flatten(0, 1)
    v = torch.cat([e, differences[differences.abs().sum(-1) > 0], noise])
    u = v[torch.randperm(len(v), generator=random)]
    slack = TOLERANCE * f(v).abs().max().item()
    broken = []
    if f(torch.zeros_like(e[:1])).abs().item() > slack or not bool((f(v) > slack).all()):
        broken.append("positive")
    for a in (2.0, -0.5, -3.0):
        left, right = homogeneity(f, a, v)
        if not torch.allclose(left, right, rtol=TOLERANCE, atol=slack):
            broken.append("homogeneous")
            break
    if bool((f(u + v) > f(u) + f(v) + slack).any()):
        broken.append("triangle")
    return tuple(broken)


# Two vectors


def dot(u: Tensor, v: Tensor) -> Tensor:
    """u·v = Σ_i u_i v_i."""
    return (u * v).sum(-1)


def dot_by_angle(length_u: Tensor, length_v: Tensor, angle: Tensor) -> Tensor:
    """u·v = ‖u‖ ‖v‖ cos θ, θ in radians: largest at 0, zero at a right angle, smallest at π."""
    return length_u * length_v * angle.cos()


def cosine(u: Tensor, v: Tensor) -> Tensor:
    """cos θ = û·v̂, in −1..1."""
    return dot(unit(u), unit(v))


def cosine_by_sides(u: Tensor, v: Tensor) -> Tensor:
    """cos θ by the law of cosines, from the three sides: (‖u‖² + ‖v‖² − ‖u − v‖²) / (2 ‖u‖ ‖v‖)."""
    a, b, c = norm(u), norm(v), distance(u, v)
    return (a**2 + b**2 - c**2) / (2 * a * b)


def angle(u: Tensor, v: Tensor) -> Tensor:
    """θ in radians, 0..π (`.rad2deg()` for degrees), by tan(θ/2) = ‖û − v̂‖ / ‖û + v̂‖: also exact for tiny angles."""
    if bool((norm(u) == 0).any() or (norm(v) == 0).any()):
        raise ValueError("the zero vector has no direction: no angle; leave it out")
    return 2 * torch.atan2(distance(unit(u), unit(v)), norm(unit(u) + unit(v)))


# A table of vectors


def pairwise_cosine(table: Tensor) -> Tensor:
    """(n, d) -> (n, n): the cosine of every row with every row."""
    rows = unit(table)
    return rows @ rows.mT


def nearest_by_cosine(x: Tensor, table: Tensor, k: int) -> Tensor:
    """The k rows of the table that point most nearly as x does, best first: indices (.., k)."""
    return (unit(x) @ unit(table).mT).topk(k, dim=-1).indices


def nearest_by_distance(x: Tensor, table: Tensor, k: int) -> Tensor:
    """The k rows of the table at the smallest Euclidean distance, nearest first: indices (.., k)."""
    return distance(x.unsqueeze(-2), table).topk(k, dim=-1, largest=False).indices
