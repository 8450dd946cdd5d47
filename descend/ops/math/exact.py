"""Matrices of fractions: the same algebra without rounding, for small matrices and for powers beyond any float.

    Gauss–Jordan     subtract multiples of rows until each pivot column is a unit vector: the reduced echelon form
    rank             the number of pivots
    null space       one vector for each column without pivot: 1 there, −R at the pivots
    coordinates      [b_1 … b_n] c = v, so v → c → v gives back v itself
    A^k              by squaring: A^13 = A^8 A^4 A

A matrix here is a numpy array of `Fraction`; `@`, `+` and `==` work on it.

Systems: basis-rank-and-null-space, eigendecomposition-and-powers
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Exact = NDArray[np.object_]
Numbers = Sequence[Any] | NDArray[Any]


def exact(values: Numbers) -> Exact:
    """The values as fractions; a float is taken as the binary number that it is."""
    array = np.array(values, dtype=object)
    return np.array([Fraction(x) for x in array.flat], dtype=object).reshape(array.shape)


def echelon(a: Exact) -> tuple[Exact, list[int]]:
    """The reduced row echelon form R, and the pivot columns."""
    r, pivots = a.copy(), list[int]()
    for column in range(r.shape[1]):
        row = len(pivots)
        candidates = [i for i in range(row, len(r)) if r[i, column] != 0]
        if not candidates:
            continue
        r[[row, candidates[0]]] = r[[candidates[0], row]]
        r[row] = r[row] / r[row, column]
        others = np.arange(len(r)) != row
        r[others] = r[others] - np.outer(r[others, column], r[row])
        pivots.append(column)
    return r, pivots


def rank(a: Exact) -> int:
    """The number of pivots."""
    return len(echelon(a)[1])


def null_space(a: Exact) -> Exact:
    """A basis of {x : A x = 0} in the rows of (nullity, n)."""
    r, pivots = echelon(a)
    free = [j for j in range(a.shape[1]) if j not in pivots]
    basis = exact(np.zeros((len(free), a.shape[1]), dtype=int))
    for vector, j in zip(basis, free, strict=True):
        vector[j] = Fraction(1)
        vector[pivots] = -r[: len(pivots), j]
    return basis


def coordinates(v: Exact, basis: Exact) -> Exact:
    """c with Σ_i c_i b_i = v for a basis in the rows of (n, n); `c @ basis` gives v back."""
    n = len(v)
    if basis.shape != (n, n) or rank(basis) < n:
        raise ValueError(f"the rows of {basis.shape} are not a basis of {n} numbers; give {n} independent vectors")
    return echelon(np.column_stack([basis.T, v]))[0][:, n]


def power(a: Exact, k: int) -> Exact:
    """A^k for k ≥ 0, by squaring: about log2 k products."""
    if k < 0:
        raise ValueError(f"the power {k} is negative; invert the matrix first")
    result, square = exact(np.eye(len(a), dtype=int)), a
    while k:
        if k % 2:
            result = result @ square
        square, k = square @ square, k // 2
    return result
