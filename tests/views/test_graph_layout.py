"""Places for nodes: all of a small graph, a linked sample of a large one, and no two parts on top of each other."""

from __future__ import annotations

import networkx as nx
import torch

from descend.data.toys.partition import plant_partition
from descend.views.graph_layout import SHOWN, lay_out


def test_a_small_graph_is_shown_whole() -> None:
    edges = torch.tensor([[0, 1], [1, 0], [1, 2], [2, 1], [3, 3]])
    picture = lay_out(5, edges)
    assert picture.rows.tolist() == [0, 1, 2, 3, 4]
    assert picture.pairs.tolist() == [[0, 1], [1, 2]]
    assert edges[picture.edges].tolist() == [[0, 1], [1, 2]]
    assert ((picture.at >= 0) & (picture.at <= 1)).all()
    assert len({tuple(at) for at in picture.at.tolist()}) == 5


def test_a_large_graph_is_shown_by_a_linked_sample() -> None:
    _, pairs, _ = plant_partition(5000)
    wanted = torch.tensor([17])
    picture = lay_out(5000, torch.cat([pairs, pairs.flip(1)]), wanted)
    assert len(picture.rows) == SHOWN
    assert 17 in picture.rows
    shown = nx.Graph(picture.pairs.tolist())
    assert nx.number_connected_components(shown) == 1
    assert shown.number_of_nodes() == SHOWN
    again = lay_out(5000, torch.cat([pairs, pairs.flip(1)]), wanted)
    assert torch.equal(again.at, picture.at)


def test_parts_stand_side_by_side() -> None:
    ring = torch.tensor([[i, (i + 1) % 6] for i in range(6)])
    picture = lay_out(12, torch.cat([ring, ring + 6]))
    first, second = picture.at[:6], picture.at[6:]
    apart = (first.amin(0) > second.amax(0)) | (second.amin(0) > first.amax(0))
    assert apart.any()


def test_neighbours_are_nearer_than_others() -> None:
    edges = torch.tensor(list(nx.karate_club_graph().edges))
    at = lay_out(34, edges).at
    far = torch.cdist(at, at)
    linked = far[edges[:, 0], edges[:, 1]].mean()
    assert linked < 0.7 * far[torch.triu_indices(34, 34, 1).unbind()].mean()
