"""Pooling between attributes, by hand on three nodes, and by matrices on larger graphs."""

from __future__ import annotations

import pytest
import torch

from descend.ops.graph.pooling import (
    pool_edges_to_context,
    pool_edges_to_nodes,
    pool_neighbours,
    pool_nodes_to_context,
    pool_nodes_to_edges,
    spread_to_edges,
    spread_to_nodes,
)
from descend.ops.graph.structure import Links
from tests.close import close
from tests.ops.graph.graphs import join, some_graphs

pytestmark = pytest.mark.system("attribute-pooling-and-readout")


@pytest.mark.system("attribute-pooling-and-readout", "pooling")
def test_by_hand() -> None:
    """A path 0 - 1 - 2; its edges 0 -> 1, 1 -> 0, 1 -> 2, 2 -> 1."""
    links = Links(torch.tensor([0, 1, 1, 2]), torch.tensor([1, 0, 2, 1]), torch.zeros(3, dtype=torch.long), 1)
    nodes = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    edges = torch.tensor([[1.0], [2.0], [3.0], [5.0]])
    assert pool_edges_to_nodes(edges, links).tolist() == [[2.0], [6.0], [3.0]]
    assert pool_nodes_to_edges(nodes, links).tolist() == [[3.0, 30.0], [3.0, 30.0], [6.0, 60.0], [6.0, 60.0]]
    assert pool_nodes_to_context(nodes, links).tolist() == [[7.0, 70.0]]
    assert pool_edges_to_context(edges, links).tolist() == [[11.0]]
    assert pool_neighbours(nodes, links).tolist() == [[2.0, 20.0], [5.0, 50.0], [2.0, 20.0]]


@pytest.mark.system("attribute-pooling-and-readout", "pooling")
def test_by_matrices() -> None:
    links = join(some_graphs())
    random = torch.Generator().manual_seed(0)
    nodes = torch.randn(links.n, 3, generator=random, dtype=torch.float64)
    edges = torch.randn(links.e, 2, generator=random, dtype=torch.float64)
    context = torch.randn(links.graphs, 2, generator=random, dtype=torch.float64)
    arrive = torch.eye(links.n, dtype=torch.float64)[:, links.target]  # (n, e)
    leave = torch.eye(links.n, dtype=torch.float64)[:, links.source]
    belong = torch.eye(links.graphs, dtype=torch.float64)[:, links.owner]  # (g, n)
    close(pool_edges_to_nodes(edges, links), arrive @ edges)
    close(pool_nodes_to_edges(nodes, links), (arrive + leave).t() @ nodes)
    close(pool_nodes_to_context(nodes, links), belong @ nodes)
    close(pool_edges_to_context(edges, links), belong @ arrive @ edges)
    close(spread_to_nodes(context, links), belong.t() @ context)
    close(spread_to_edges(context, links), (belong @ leave).t() @ context)
