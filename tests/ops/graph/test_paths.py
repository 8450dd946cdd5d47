"""Distances, components and rings against networkx."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from networkx.generators.atlas import graph_atlas_g

from descend.ops.graph.paths import choose_nearest, components, count_components, cycle_rank, distances
from tests.ops.graph.graphs import join, links_of, some_graphs

GRAPHS = [*some_graphs(), nx.path_graph(300), nx.gnp_random_graph(30, 0.05, seed=2, directed=True)]


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_distances(graph: nx.Graph) -> None:
    n = len(graph)
    wanted = torch.full((n, n), -1)
    for u, found in nx.all_pairs_shortest_path_length(graph):
        for v, hops in found.items():
            wanted[v, u] = hops
    assert torch.equal(distances(links_of(graph), torch.arange(n)), wanted)
    assert torch.equal(distances(links_of(graph), torch.tensor([n - 1, 0])), wanted[:, [n - 1, 0]])


@pytest.mark.system("graph-task-labs")
@pytest.mark.system("graph-task-labs", "rings")
def test_components_and_rings() -> None:
    """Of all graphs of up to six nodes, in one batch: as many rings as networkx finds in a basis of cycles."""
    graphs = [*graph_atlas_g()[1:209], *some_graphs(), nx.path_graph(300)]
    links = join(graphs)
    assert cycle_rank(links).tolist() == [len(nx.cycle_basis(graph)) for graph in graphs]
    assert count_components(links).tolist() == [nx.number_connected_components(graph) for graph in graphs]
    one_way = GRAPHS[-1]
    first = {v: min(part) for part in nx.weakly_connected_components(one_way) for v in part}
    assert components(links_of(one_way)).tolist() == [first[v] for v in one_way]


@pytest.mark.system("graph-task-labs")
@pytest.mark.system("graph-task-labs", "karate")
def test_the_nearer_leader() -> None:
    """28 members right, none wrong, 6 as near to both; the sides are those of networkx's attribute `club`."""
    club = nx.karate_club_graph()
    side = torch.tensor([int(club.nodes[v]["club"] != "Mr. Hi") for v in club])
    nearest = choose_nearest(links_of(club), torch.tensor([0, 33]))
    assert int((nearest == -1).sum()) == 6
    assert int((nearest == side).sum()) == 28
    apart = links_of(nx.disjoint_union(nx.path_graph(3), nx.empty_graph(1)))
    assert choose_nearest(apart, torch.tensor([0, 2])).tolist() == [0, -1, 1, -1]
