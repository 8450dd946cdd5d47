"""Laplacians against networkx and scipy, and their largest eigenvalues."""

from __future__ import annotations

import math

import networkx as nx
import pytest
import scipy.sparse.csgraph as csgraph
import torch

from descend.ops.graph.laplacian import (
    Kept,
    Scaled,
    bound_eigenvalues,
    iterate_power,
    laplacian,
    largest_eigenvalues,
    scale,
    symmetric_laplacian,
)
from descend.ops.graph.structure import Links
from tests.close import close
from tests.ops.graph.graphs import grid, join, links_of, some_graphs

F64 = torch.float64
pytestmark = pytest.mark.system("graph-laplacian")


@pytest.mark.system("graph-laplacian", "normalizations")
@pytest.mark.parametrize("graph", some_graphs(), ids=str)
def test_plain_and_symmetric(graph: nx.Graph) -> None:
    links = links_of(graph)
    plain, symmetric = laplacian(links, F64), symmetric_laplacian(links, F64)
    close(plain.dense(), torch.tensor(nx.laplacian_matrix(graph, weight=None).toarray(), dtype=F64))
    close(symmetric.dense(), torch.tensor(nx.normalized_laplacian_matrix(graph, weight=None).toarray()))
    a = nx.to_numpy_array(graph, weight=None)
    close(plain.dense(), torch.tensor(csgraph.laplacian(a)))
    close(symmetric.dense(), torch.tensor(csgraph.laplacian(a, normed=True)))
    x = torch.randn(links.n, 3, dtype=F64, generator=torch.Generator().manual_seed(0))
    for matrix in (plain, symmetric):
        close(matrix @ x, matrix.dense() @ x)


@pytest.mark.system("graph-laplacian", "normalizations")
@pytest.mark.parametrize("build", [laplacian, symmetric_laplacian])
def test_scaled_by_the_largest_of_each_graph(build: type) -> None:
    """In a batch each graph has its own λ_max, and gives what it gives alone; without edges L̃ = −I."""
    graphs = [*some_graphs(), nx.empty_graph(2)]
    together = join(graphs)
    matrix = build(together, F64)
    whole = scale(matrix, largest_eigenvalues(matrix)).dense()
    start = 0
    for graph in graphs:
        end = start + len(graph)
        own = build(links_of(graph), F64).dense()
        top = torch.linalg.eigvalsh(own)[-1]
        wanted = -torch.eye(len(graph)).double() + (2 * own / top if top > 0 else 0)
        close(whole[start:end, start:end], wanted)
        values = torch.linalg.eigvalsh(whole[start:end, start:end])
        close(values[0], torch.tensor(-1.0).double())
        assert values[-1] <= 1 + 1e-12
        start = end
    assert not whole[:34, 34:].any()


@pytest.mark.system("graph-laplacian", "spectrum")
def test_spectrum() -> None:
    """Of a path, 2 − 2 cos(πk/n); of any graph: rows sum to 0, no value below 0, a 0 for each component."""
    n = 8
    values = torch.linalg.eigvalsh(laplacian(links_of(nx.path_graph(n)), F64).dense())
    close(values, torch.tensor([2 - 2 * math.cos(math.pi * k / n) for k in range(n)], dtype=F64))
    for graph in some_graphs():
        plain = laplacian(links_of(graph), F64).dense()
        assert not plain.sum(1).any()
        for matrix in (plain, symmetric_laplacian(links_of(graph), F64).dense()):
            values = torch.linalg.eigvalsh(matrix)
            assert values[0] > -1e-12
            assert int((values.abs() < 1e-10).sum()) == nx.number_connected_components(graph)


@pytest.mark.system("chebnet")
@pytest.mark.system("chebnet", "largest-eigenvalue")
@pytest.mark.parametrize("build", [laplacian, symmetric_laplacian])
def test_largest_eigenvalues(build: type) -> None:
    """All at once: exact, by power iteration, and below the bound."""
    graphs = [*some_graphs(), grid(), nx.empty_graph(1)]
    matrix = build(join(graphs), F64)
    wanted = torch.stack([torch.linalg.eigvalsh(build(links_of(graph), F64).dense())[-1] for graph in graphs])
    close(largest_eigenvalues(matrix), wanted)
    close(iterate_power(matrix, steps=5000, tolerance=1e-14), wanted, loosen=100)
    assert (iterate_power(matrix, steps=30) <= wanted + 1e-12).all()
    assert (bound_eigenvalues(matrix) >= wanted - 1e-12).all()


def test_an_edge_that_leads_one_way() -> None:
    """Rows still sum to 0; an exact eigenvalue is refused in one line."""
    one_way = Links(torch.tensor([0, 1]), torch.tensor([1, 2]), torch.zeros(3, dtype=torch.long), 1)
    assert not laplacian(one_way).dense().sum(1).any()
    assert symmetric_laplacian(one_way).dense().isfinite().all()
    with pytest.raises(ValueError, match="both directions"):
        largest_eigenvalues(laplacian(one_way))


def test_an_operator_is_built_once_for_the_same_links() -> None:
    built = []

    def build(links: Links, dtype: torch.dtype):  # type: ignore[no-untyped-def]
        built.append(dtype)
        return Scaled(laplacian, bound_eigenvalues)(links, dtype)

    kept, links = Kept(build), links_of(nx.path_graph(3))
    close(kept(links, F64).dense(), kept(links, F64).dense())
    assert kept(links, torch.float32).own.dtype == torch.float32
    assert built == [F64, torch.float32]
    del links
    assert not kept.kept
