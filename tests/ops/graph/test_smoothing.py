"""Over-smoothing: the rate, the limit and the energy, against dense matrices."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from descend.ops.graph.smoothing import dirichlet_energy, distance_to_limit, mean_distance, smooth, smoothing_rate
from tests.close import close
from tests.ops.graph.graphs import join, links_of

pytestmark = pytest.mark.system("over-smoothing")
F64 = torch.float64


def kipf(graph: nx.Graph) -> torch.Tensor:
    """D̃^(−1/2) (A + I) D̃^(−1/2), written out."""
    a = nx.to_numpy_array(graph, weight=None) + np.eye(len(graph))
    root = np.diag(a.sum(1) ** -0.5)
    return torch.tensor(root @ a @ root)


def draw(n: int, d: int) -> torch.Tensor:
    return torch.randn(n, d, dtype=F64, generator=torch.Generator().manual_seed(n))


GRAPHS = [nx.karate_club_graph(), nx.path_graph(6), nx.star_graph(5), nx.complete_graph(4)]


@pytest.mark.system("over-smoothing", "rate")
@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_differences_shrink_at_the_rate_of_the_second_eigenvalue(graph: nx.Graph) -> None:
    links, dense, x = links_of(graph), kipf(graph), draw(len(graph), 3)
    values = np.sort(np.abs(np.linalg.eigvalsh(dense.numpy())))
    rate = smoothing_rate(links)
    assert rate == pytest.approx(values[-2], abs=1e-12)
    close(smooth(x, links, 5), torch.linalg.matrix_power(dense, 5) @ x)
    top = torch.linalg.eigh(dense).eigenvectors[:, -1:]
    close(distance_to_limit(x, links), (x - top @ top.T @ x).norm())
    early, late, later = (distance_to_limit(smooth(x, links, k), links) for k in (0, 20, 21))
    assert later <= early * rate**21 + 1e-12
    if rate > 0.1:
        assert float(later / late) == pytest.approx(rate, abs=0.02)


@pytest.mark.system("over-smoothing", "rate")
def test_without_a_path_between_them_parts_keep_apart() -> None:
    parts = nx.disjoint_union(nx.path_graph(3), nx.path_graph(4))
    assert smoothing_rate(links_of(parts)) == pytest.approx(1)
    assert smoothing_rate(links_of(nx.empty_graph(1))) == 0


def test_energy_and_distance() -> None:
    """½ Σ_uv Ã_uv ‖h_u / √D̃_u − h_v / √D̃_v‖², for each graph of a batch."""
    wanted, parts = [], []
    for graph in GRAPHS:
        x = draw(len(graph), 2)
        h = x / torch.tensor([graph.degree[v] + 1 for v in graph]).double().sqrt()[:, None]
        wanted.append(sum(((h[u] - h[v]) ** 2).sum() for u, v in graph.edges))
        parts.append(x)
    close(dirichlet_energy(torch.cat(parts), join(GRAPHS)), torch.stack(wanted))
    x = parts[0]
    both = [(x[u] - x[v]).norm() for u in range(34) for v in range(34) if u != v]
    close(mean_distance(x), torch.stack(both).mean())
