"""Cover's theorem: how many of the 2^P ways to label P points a hyperplane can make.

    C(P, N) = 2 Σ_{k=0}^{N−1} binom(P − 1, k)        P points in general position in N dimensions, planes through 0
    with a bias: C(P, N + 1)                         share C / 2^P: 1 for P ≤ N, exactly 1/2 at P = 2N, → 0 beyond

A non-linear expansion of the inputs raises N, and so the share. Erratum: DLN says that only about N labelings are
separable. C grows as P^(N−1): 14 of 16 for four points in the plane; that the share goes to 0 is right.

Systems: covers-theorem
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import torch
from torch import Tensor

from descend.theory.perceptron import separable


def count_dichotomies(points: int, dimensions: int) -> int:
    """C(P, N), for planes through the origin; with a bias give N + 1."""
    return 2 * sum(comb(points - 1, k) for k in range(dimensions))


def separable_share(points: int, dimensions: int) -> float:
    """C(P, N) / 2^P."""
    return float(Fraction(count_dichotomies(points, dimensions), 2**points))


def count_separable(x: Tensor) -> int:
    """The labelings of points (p, n) that some hyperplane with a bias makes: a linear program for each, up to sign."""
    signs = product((1.0, -1.0), repeat=len(x) - 1)
    return 2 * sum(separable(x, torch.tensor([1.0, *rest], dtype=x.dtype)) for rest in signs)


def estimate_share(x: Tensor, draws: int, random: torch.Generator) -> float:
    """The share of separable ones among random labelings of points (p, n), with a bias."""
    labels = 2.0 * torch.randint(2, (draws, len(x)), generator=random) - 1
    return sum(separable(x, y.to(x.dtype)) for y in labels) / draws


def add_products(x: Tensor) -> Tensor:
    """(x, x_i x_j for i ≤ j): from n to n + n (n + 1) / 2 dimensions."""
    i, j = torch.triu_indices(x.shape[-1], x.shape[-1])
    return torch.cat([x, x[..., i] * x[..., j]], -1)
