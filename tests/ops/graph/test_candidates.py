"""New links: every pair without a link is asked about once, in pieces; the best come first."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from torch import Tensor

from descend.ops.graph import candidates
from descend.ops.graph.candidates import list_pairs, rank_new_links
from descend.ops.graph.structure import Links


def club(directed: bool = False) -> tuple[Links, nx.Graph]:
    graph = nx.karate_club_graph()
    edges = torch.tensor(list(graph.edges))
    both = edges if directed else torch.cat([edges, edges.flip(1)])
    return Links(both[:, 0], both[:, 1], torch.zeros(34, dtype=torch.long), 1), graph


def product(pairs: Tensor) -> Tensor:
    """No two pairs have the same score."""
    return (pairs[:, 0] * 101 + pairs[:, 1] * 37 % 89).float() % 997 + pairs[:, 1] / 1000


@pytest.mark.parametrize("directed", [False, True])
def test_the_best_of_all_pairs_without_a_link(directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    links, graph = club(directed)
    taken = set(map(tuple, links.source.new_tensor([list(e) for e in graph.edges]).tolist()))
    every = [
        (u, v)
        for u in range(34)
        for v in range(34)
        if (u != v if directed else u < v) and (u, v) not in taken and (directed or (v, u) not in taken)
    ]
    score = dict(zip(every, product(torch.tensor(every)).tolist(), strict=True))
    monkeypatch.setattr(candidates, "PIECE", 100)
    pairs, found = rank_new_links(product, links, directed, 7)
    assert [tuple(pair) for pair in pairs.tolist()] == sorted(every, key=lambda pair: -score[pair])[:7]
    assert found.tolist() == sorted(score.values(), reverse=True)[:7]


def test_of_a_large_graph_those_with_a_common_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    links, graph = club()
    monkeypatch.setattr(candidates, "MOST", 10)
    monkeypatch.setattr(candidates, "PIECE", 200)
    found = {tuple(pair) for piece in list_pairs(links, False) for pair in piece.tolist()}
    expected = {(u, v) for u in graph for v in graph if u < v and set(graph[u]) & set(graph[v])}
    assert found == expected


def test_where_all_are_linked_there_is_nothing_to_expect() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    pairs, found = rank_new_links(
        product, Links(edges[:, 0], edges[:, 1], torch.zeros(2, dtype=torch.long), 1), False, 3
    )
    assert len(pairs) == len(found) == 0
