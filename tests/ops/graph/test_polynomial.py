"""Polynomial filters against dense powers, and what the books say of them."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import pytest
import torch

from descend.ops.graph.laplacian import Operator, laplacian, largest_eigenvalues, scale, symmetric_laplacian
from descend.ops.graph.polynomial import (
    chebyshev,
    filter_nodes,
    powers,
    reach,
    respond,
    respond_chebyshev,
    sum_chebyshev,
    sum_powers,
)
from tests.close import close
from tests.ops.graph.graphs import grid, links_of, permuted

F64 = torch.float64


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def scaled_grid() -> Operator:
    matrix = laplacian(links_of(grid()), F64)
    return scale(matrix, largest_eigenvalues(matrix))


@pytest.mark.system("polynomial-graph-filter")
@pytest.mark.system("polynomial-graph-filter", "filter")
@pytest.mark.parametrize("build", [laplacian, symmetric_laplacian])
@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_sparse_is_dense(build: Callable[..., Operator], degree: int) -> None:
    """Any degree, several channels: one w for all, one for each channel, and a matrix for each degree."""
    matrix, x = build(links_of(nx.karate_club_graph()), F64), draw(34, 3)
    dense = [torch.linalg.matrix_power(matrix.dense(), i) for i in range(degree + 1)]
    w, each, mixed = draw(degree + 1, seed=1), draw(degree + 1, 3, seed=2), draw(degree + 1, 3, 4, seed=3)
    terms = powers(matrix, x, degree)
    close(filter_nodes(terms, w), sum(w[i] * dense[i] for i in range(degree + 1)) @ x, loosen=10)
    close(filter_nodes(terms, each), sum(dense[i] @ (x * each[i]) for i in range(degree + 1)), loosen=10)
    close(sum_powers(matrix, [x @ part for part in mixed]), sum(dense[i] @ x @ mixed[i] for i in range(degree + 1)))


@pytest.mark.system("chebnet")
@pytest.mark.system("chebnet", "recurrence")
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 8])
def test_chebyshev_terms_are_cosines_of_the_spectrum(degree: int) -> None:
    """T_i(L̃) has the eigenvalues cos(i arccos λ), with the eigenvectors of L̃; Clenshaw's rule gives the same sum."""
    matrix = scaled_grid()
    values, vectors = torch.linalg.eigh(matrix.dense())
    each = chebyshev(matrix, torch.eye(25, dtype=F64), degree)
    for i, term in enumerate(each):
        close(term, vectors @ torch.diag((i * values.clamp(-1, 1).arccos()).cos()) @ vectors.T, loosen=10)
    parts = list(draw(degree + 1, 25, 2))
    close(sum_chebyshev(matrix, parts), sum(term @ part for term, part in zip(each, parts, strict=True)), loosen=10)


@pytest.mark.system("polynomial-graph-filter")
@pytest.mark.system("chebnet")
def test_an_eigenvector_is_multiplied_by_the_response() -> None:
    matrix, w = scaled_grid(), draw(5)
    values, vectors = torch.linalg.eigh(matrix.dense())
    close(filter_nodes(powers(matrix, vectors, 4), w), vectors * respond(w, values))
    close(filter_nodes(chebyshev(matrix, vectors, 4), w), vectors * respond_chebyshev(w, values.clamp(-1, 1)), 10)


@pytest.mark.system("polynomial-graph-filter", "errata")
def test_what_the_demonstration_filters_do() -> None:
    """0.1 L: the node by 0.1 D_v, its neighbours by −0.1. 0.01 L²: two hops, the node most. DLN says otherwise."""
    matrix, impulse = laplacian(links_of(grid()), F64), torch.zeros(25, 1, dtype=F64)
    impulse[12] = 1
    once = filter_nodes(powers(matrix, impulse, 2), torch.tensor([0, 0.1, 0], dtype=F64)).view(5, 5)
    close(once[2, 2], 0.1 * matrix.links.degree[12].double())
    assert torch.allclose(once[1:4, 1:4][torch.arange(9).view(3, 3) != 4], torch.tensor(-0.1, dtype=F64))
    assert not once[0].any()
    twice = filter_nodes(powers(matrix, impulse, 2), torch.tensor([0, 0, 0.01], dtype=F64)).view(5, 5)
    assert twice[0].all()
    assert twice.abs().max() == twice[2, 2] > 0.7
    assert twice[1, 1] < 0 < twice[0, 0]


@pytest.mark.system("polynomial-graph-filter", "errata")
def test_the_own_value_is_multiplied_by_the_degree() -> None:
    """(L x)_v = D_v x_v − Σ x_u; with x_u, as printed twice, it would be another number."""
    links, x = links_of(nx.karate_club_graph()), draw(34, 1)
    degree, a = links.degree.double()[:, None], links.adjacency().double()
    close(laplacian(links, F64) @ x, degree * x - a @ x)


@pytest.mark.system("polynomial-graph-filter", "locality")
@pytest.mark.parametrize("degree", range(5))
def test_a_degree_reaches_as_many_hops(degree: int) -> None:
    """On a path, in both bases; entries of Lⁱ beyond distance i are exactly 0, and not already beyond 1."""
    matrix, w = laplacian(links_of(nx.path_graph(8)), F64), torch.ones(degree + 1, dtype=F64)
    assert reach(matrix, powers, w) == degree
    assert reach(scale(matrix, largest_eigenvalues(matrix)), chebyshev, w) == degree
    if degree > 1:
        power = torch.linalg.matrix_power(matrix.dense(), degree)
        assert power[0, degree] != 0
        assert not power[0, degree + 1 :].any()


@pytest.mark.system("chebnet", "equivariance")
def test_another_order_of_nodes_gives_the_same_values_in_that_order() -> None:
    links, to, x = links_of(grid()), torch.randperm(25, generator=torch.Generator().manual_seed(5)), draw(25, 2)
    moved, parts = torch.empty_like(x), draw(4)
    moved[to] = x
    for basis, total in ((powers, sum_powers), (chebyshev, sum_chebyshev)):
        here, there = scaled_grid(), laplacian(permuted(links, to), F64)
        there = scale(there, largest_eigenvalues(there))
        wanted = filter_nodes(basis(here, x, 3), parts)
        close(filter_nodes(basis(there, moved, 3), parts)[to], wanted)
        close(total(there, [w * moved for w in parts])[to], wanted)
