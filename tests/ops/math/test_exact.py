"""Exact algebra against sympy, and round trips without any rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.ops.math.exact import coordinates, echelon, exact, null_space, power, rank

MATRICES = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(-4, 4), min_size=n, max_size=n), min_size=1, max_size=4)
)


@pytest.mark.system("basis-rank-and-null-space")
@pytest.mark.system("basis-rank-and-null-space", "null-space")
@given(rows=MATRICES)
@settings(deadline=None, max_examples=25, derandomize=True)
def test_echelon_rank_and_null_space_equal_sympy(rows: list[list[int]]) -> None:
    a, theirs = exact(rows), sympy.Matrix(rows)
    r, pivots = echelon(a)
    expected, expected_pivots = theirs.rref()
    assert r.tolist() == [[Fraction(int(x.p), int(x.q)) for x in row] for row in expected.tolist()]
    assert tuple(pivots) == expected_pivots
    assert rank(a) == theirs.rank() == rank(a.T)
    null = null_space(a)
    assert len(null) == a.shape[1] - rank(a)
    assert not np.any(a @ null.T)
    assert rank(null) == len(null) if len(null) else True


@pytest.mark.system("basis-rank-and-null-space")
@pytest.mark.system("basis-rank-and-null-space", "round-trip")
@given(rows=st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3), min_size=3, max_size=3))
@settings(deadline=None, max_examples=30, derandomize=True)
def test_the_round_trip_of_coordinates_is_exact(rows: list[list[int]]) -> None:
    basis, v = exact(rows), exact([Fraction(1, 3), 7, Fraction(-22, 7)])
    if rank(basis) < 3:
        with pytest.raises(ValueError, match="not a basis"):
            coordinates(v, basis)
        return
    assert (coordinates(v, basis) @ basis).tolist() == v.tolist()


@pytest.mark.system("basis-rank-and-null-space")
def test_the_basis_of_vom() -> None:
    assert coordinates(exact([3, 4]), exact([[1, 1], [1, -1]])).tolist() == [Fraction(7, 2), Fraction(-1, 2)]
    assert null_space(exact([[1, 2], [2, 4]])).tolist() == [[-2, 1]]
    assert exact([0.1])[0] != Fraction(1, 10)  # a float is the binary number that it is


@pytest.mark.system("eigendecomposition-and-powers")
@pytest.mark.system("eigendecomposition-and-powers", "powers")
def test_powers_in_whole_numbers() -> None:
    """VOM 1.5.3: A^100 x = (7/3) 5^100 v1 + (2/3) 2^100 v2, seventy digits and all of them right."""
    a, x = exact([[4, 1], [2, 3]]), exact([3, 1])
    expected = [Fraction(7, 3) * 5**100 + Fraction(2, 3) * 2**100, Fraction(7, 3) * 5**100 - Fraction(4, 3) * 2**100]
    assert (power(a, 100) @ x).tolist() == expected
    assert all(n.denominator == 1 for n in expected)
    assert power(a, 13).tolist() == (sympy.Matrix([[4, 1], [2, 3]]) ** 13).tolist()
    assert power(a, 0).tolist() == [[1, 0], [0, 1]]
    assert power(a, 1).tolist() == a.tolist()
    fibonacci = power(exact([[1, 1], [1, 0]]), 90)
    assert fibonacci[0, 1] == 2880067194370816120
    with pytest.raises(ValueError, match="negative"):
        power(a, -1)
