"""Stacked polynomial filters: the equation written out, how many parameters, and what they learn."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from descend.data.toys.partition import plant_partition
from descend.engine.minimise import minimise
from descend.losses.classification import cross_entropy
from descend.models.polynomial_gcn import PolynomialGCN, PolynomialGCNConfig, PolynomialGCNForNodes
from descend.ops.graph.structure import Graph, build_graph
from descend.optim.rules import Adam
from tests.close import close
from tests.ops.graph.graphs import links_of, permuted

pytestmark = pytest.mark.system("polynomial-graph-filter")


def graph_of(graph: nx.Graph, nodes: torch.Tensor) -> Graph:
    links = links_of(graph)
    return Graph(links, nodes, nodes.new_zeros(links.e, 0), nodes.new_zeros(1, 0))


@pytest.mark.system("polynomial-graph-filter", "stacked")
@pytest.mark.parametrize(("depth", "degree"), [(1, 0), (2, 2), (4, 3)])
def test_one_channel_has_k_times_d_plus_1_parameters(depth: int, degree: int) -> None:
    """On any graph; h⁽ᵏ⁾ = relu(p_w(L) h⁽ᵏ⁻¹⁾) written out with dense powers, and the last without relu."""
    torch.manual_seed(depth)
    config = PolynomialGCNConfig(1, 1, 1, depth, degree, laplacian="none", dropout=0.0)
    model = PolynomialGCN(config).double()
    assert sum(p.numel() for p in model.parameters()) == depth * (degree + 1)
    for graph in (nx.path_graph(6), nx.karate_club_graph()):
        dense = torch.tensor(nx.laplacian_matrix(graph, weight=None).toarray()).double()
        h = torch.randn(len(graph), 1).double()
        y = model(graph_of(graph, h))
        for k, layer in enumerate(model.layers):
            h = h.relu() if k else h
            h = sum(w * torch.linalg.matrix_power(dense, i) for i, w in enumerate(layer.maps.weight[:, 0])) @ h
        close(y, h)


def test_it_does_not_depend_on_the_order_of_nodes() -> None:
    torch.manual_seed(0)
    model = PolynomialGCNForNodes(PolynomialGCNConfig(3, 4, 2)).double().eval()
    links, x, to = links_of(nx.karate_club_graph()), torch.randn(34, 3).double(), torch.randperm(34)
    moved = torch.empty_like(x)
    moved[to] = x
    empty = x.new_zeros(links.e, 0), x.new_zeros(1, 0)
    close(model(Graph(permuted(links, to), moved, *empty))[to], model(Graph(links, x, *empty)))


@pytest.mark.system("polynomial-graph-filter", "stacked")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_learns_to_classify_nodes(seed: int) -> None:
    """Of 600 nodes of a planted partition half teach; the others are classified, and worse without links (degree 0)."""
    planted = plant_partition(600, seed=seed)
    graph = build_graph(planted.x, torch.cat([planted.pairs, planted.pairs.flip(1)]))
    known, others = torch.arange(300), torch.arange(300, 600)
    right = {}
    for degree in (0, 2):
        torch.manual_seed(seed)
        model = PolynomialGCNForNodes(PolynomialGCNConfig(planted.x.shape[1], 16, 4, 2, degree))

        def loss(model: PolynomialGCNForNodes = model) -> torch.Tensor:
            return cross_entropy(model(graph)[known], planted.y[known]).mean()

        minimise(model, loss, 100, Adam(0.01))
        model.eval()
        right[degree] = float((model(graph).argmax(1) == planted.y)[others].double().mean())
    assert right[2] > max(0.85, right[0] + 0.15), right
