"""Graphs in memory: both directions of an edge, adjacency and back, many graphs as one, the table of their sizes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor

from descend.data.graphs.attributed import AttributedGraph, Graphs, gather, link
from descend.data.graphs.embedded import load_graphs
from descend.data.graphs.exchange import from_scipy
from descend.data.graphs.karate import load_karate
from descend.data.graphs.statistics import density, mean_degree, measure_graphs
from descend.data.streams.batches import join_batches, slice_examples, take_examples
from descend.ops.graph.aggregate import max_neighbours, mean_groups, mean_neighbours, sum_neighbours
from descend.ops.graph.batches import read_graph
from tests.close import close


def random_graph(n: int, seed: int, directed: bool = False) -> AttributedGraph:
    """With attributes of nodes (3), of edges (2), and of the whole (2)."""
    random = torch.Generator().manual_seed(seed)
    pairs = torch.randint(n, (2 * n, 2), generator=random)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    x, e = torch.randn(n, 3, generator=random), torch.randn(len(pairs), 2, generator=random)
    return link(x, pairs, directed, e, torch.randn(2, generator=random))


def graphs(count: int = 12) -> Graphs:
    sizes = [1 + (7 * i) % 11 for i in range(count)]
    return gather([random_graph(n, i) for i, n in enumerate(sizes)], torch.arange(count) % 2)


@pytest.mark.system("graph-data-structure", "attributes")
@pytest.mark.parametrize("directed", [False, True])
def test_an_undirected_edge_is_two_with_the_same_attributes(directed: bool) -> None:
    graph = random_graph(9, 3, directed)
    a = read_graph(graph.batch()).links.adjacency()
    assert int(a.max()) == 1
    assert torch.equal(a, a.T) is not directed
    at = {tuple(edge): values for edge, values in zip(graph.edges.tolist(), graph.edge_attributes, strict=True)}
    if not directed:
        assert all(torch.equal(values, at[v, u]) for (u, v), values in at.items())
    given = random_graph(9, 3, True)
    pairs = given.edges.tolist() if directed else [sorted(pair) for pair in given.edges.tolist()]
    assert {tuple(pair) for pair in pairs} == set(map(tuple, graph.pairs.tolist()))
    found = read_graph(graph.batch())
    assert found.nodes.shape == (9, 3)
    assert found.edges.shape == (len(graph.edges), 2)
    assert found.context.shape == (1, 2)


@pytest.mark.system("graph-data-structure", "round-trip")
@pytest.mark.parametrize("directed", [False, True])
def test_an_edge_list_becomes_a_matrix_and_a_list_again(directed: bool) -> None:
    for seed in range(5):
        graph = random_graph(8, seed, directed)
        a = read_graph(graph.batch()).links.adjacency()
        theirs = nx.DiGraph(map(tuple, graph.edges.tolist()))
        matrix = nx.to_numpy_array(theirs, nodelist=range(8)) if len(theirs) == 8 else np.zeros(0)
        if len(theirs) == 8:
            assert torch.equal(a, torch.from_numpy(matrix.T).long())  # A_vu = 1 where an edge leads from u to v
        back = from_scipy(a.T.numpy())
        assert torch.equal(back.edges, graph.edges)


@pytest.mark.system("graph-data-structure", "batched")
def test_a_batch_gives_what_each_graph_gives_alone() -> None:
    """However it is cut, chosen from and joined."""
    whole = graphs()
    alone = [describe(whole.one(i).batch()) for i in range(len(whole))]
    order = torch.tensor([3, 0, 11, 5, 5, 7])
    cut = [slice_examples(whole.arrays, 0, 5), slice_examples(whole.arrays, 5, 6), slice_examples(whole.arrays, 6, 12)]
    for batch, rows in (
        (whole.arrays, range(12)),
        (take_examples(whole.arrays, order), order.tolist()),
        (join_batches(cut), range(12)),
        (join_batches([cut[2], cut[0]]), [*range(6, 12), *range(5)]),
        (cut[1], [5]),
    ):
        found = describe(batch)
        for part in range(3):
            close(found[part], torch.cat([alone[i][part] for i in rows]))


def describe(batch: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """What nodes hear in two layers, what a readout gives, and attributes of edges at the end they lead to."""
    graph = read_graph(batch)
    h = mean_neighbours(
        sum_neighbours(graph.nodes, graph.links) + max_neighbours(graph.nodes, graph.links), graph.links
    )
    ends = graph.edges * graph.nodes[graph.links.target, :1]
    return h, mean_groups(h, graph.links.owner, graph.links.graphs) + graph.context.sum(1, keepdim=True), ends


@pytest.mark.system("graph-data-structure", "sparse-dense")
@pytest.mark.parametrize("directed", [False, True])
def test_messages_along_the_list_are_the_dense_product(directed: bool) -> None:
    graph = read_graph(random_graph(40, 1, directed).batch())
    a = graph.links.adjacency().float()
    close(sum_neighbours(graph.nodes, graph.links), a @ graph.nodes)
    close(mean_neighbours(graph.nodes, graph.links), a @ graph.nodes / a.sum(1, keepdim=True).clamp_min(1))


@pytest.mark.system("graph-data-structure", "statistics")
def test_the_table_of_sizes() -> None:
    club, theirs = load_karate().graph, nx.karate_club_graph()
    found = measure_graphs([club])
    degrees = [d for _, d in theirs.degree]
    assert found[:4] == (1, len(theirs), theirs.number_of_edges(), min(degrees))
    assert found.most == max(degrees)
    close(torch.tensor(found.mean), torch.tensor(mean_degree(34, 78)))
    close(torch.tensor(density(34, 156)), torch.tensor(nx.density(theirs) * 33 / 34))
    many = load_graphs("rings", 50)
    table = measure_graphs([many.one(i) for i in range(50)])
    assert table.graphs == 50
    assert table.nodes == len(many.arrays["nodes"])
    assert table.edges == len(many.arrays["edges"])  # taken alone they are directed
    close(torch.tensor(table.mean), torch.tensor(table.edges / table.nodes))
    lonely = measure_graphs([link(torch.zeros(3, 0), torch.tensor([[0, 1]]), directed=True)])
    assert (lonely.least, lonely.most, lonely.isolated) == (0, 1, 1)
