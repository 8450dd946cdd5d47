"""Runge-Kutta tables: their orders by the conditions of Butcher's trees, in exact fractions, and scipy's numbers."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial

import numpy as np
import pytest
import torch
from scipy.integrate import RK45

from descend.ops.ode.tableaux import DOPRI5, METHODS, RKF45, Tableau
from tests.close import close

pytestmark = pytest.mark.system("ode-solvers")
Tree = tuple["Tree", ...]  # the subtrees of a root


@cache
def trees(size: int) -> list[Tree]:
    """All rooted trees with this many nodes."""
    found = {tuple(sorted(forest)) for forest in forests(size - 1)}
    return sorted(found)


@cache
def forests(size: int) -> list[Tree]:
    if size == 0:
        return [()]
    return [(tree, *rest) for first in range(1, size + 1) for tree in trees(first) for rest in forests(size - first)]


def nodes(tree: Tree) -> int:
    return 1 + sum(map(nodes, tree))


def density(tree: Tree) -> int:
    """γ(tree)"""
    found = nodes(tree)
    for part in tree:
        found *= density(part)
    return found


def weights(tree: Tree, tableau: Tableau) -> list[Fraction]:
    """Φ_i(tree) of each stage i."""
    s = len(tableau.c)
    inner = []
    for part in tree:
        own = weights(part, tableau)
        inner.append([sum((a * own[j] for j, a in enumerate(tableau.a[i])), Fraction(0)) for i in range(s)])
    found = [Fraction(1)] * s
    for column in inner:
        found = [x * y for x, y in zip(found, column, strict=True)]
    return found


def order(b: tuple[Fraction, ...], tableau: Tableau) -> int:
    """The highest p for which Σ_i b_i Φ_i(tree) = 1/γ(tree) for all trees of at most p nodes."""
    p = 0
    while all(
        sum(x * y for x, y in zip(b, weights(tree, tableau), strict=True)) == Fraction(1, density(tree))
        for tree in trees(p + 1)
    ):
        p += 1
    return p


def test_there_are_as_many_trees_as_known() -> None:
    assert [len(trees(n)) for n in range(1, 7)] == [1, 1, 2, 4, 9, 20]
    assert density(((), ())) == 3
    assert density((((),),)) == factorial(3)


@pytest.mark.system("ode-solvers", "tables")
@pytest.mark.parametrize("name", METHODS)
def test_each_method_has_its_order(name: str) -> None:
    tableau = METHODS[name]
    assert order(tableau.b, tableau) == tableau.order
    assert [sum(row, Fraction(0)) for row in tableau.a] == list(tableau.c)
    if tableau.adaptive:
        other = tuple(b - e for b, e in zip(tableau.b, tableau.e, strict=True))
        assert order(other, tableau) == tableau.paired
    assert (RKF45.order, RKF45.paired, DOPRI5.order, DOPRI5.paired) == (4, 5, 5, 4)


@pytest.mark.system("ode-solvers", "tables")
def test_dormand_prince_is_scipys() -> None:
    close(torch.tensor([float(b) for b in DOPRI5.b[:-1]], dtype=torch.float64), torch.tensor(RK45.B))
    close(torch.tensor([float(e) for e in DOPRI5.e], dtype=torch.float64), torch.tensor(-RK45.E))
    for i, ours in enumerate(DOPRI5.a[1:6], start=1):
        close(torch.tensor([float(a) for a in ours], dtype=torch.float64), torch.tensor(np.asarray(RK45.A[i, :i])))
    assert DOPRI5.first_same_as_last
    assert not RKF45.first_same_as_last
