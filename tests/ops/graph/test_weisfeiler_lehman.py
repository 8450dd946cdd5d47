"""Colour refinement against networkx: the same partitions as its hashes, and never "different" for one graph."""

from __future__ import annotations

from itertools import combinations, product

import networkx as nx
import pytest
import torch
from networkx.generators.atlas import graph_atlas_g

from descend.ops.graph.aggregate import max_groups, mean_groups, sum_groups
from descend.ops.graph.weisfeiler_lehman import classify_graphs, colour_nodes, compare, is_isomorphism, name_sequences
from tests.ops.graph.graphs import join, links_of, permuted, some_graphs

pytestmark = pytest.mark.system("weisfeiler-lehman")


def same_partition(one: list[object], other: list[object]) -> bool:
    """Whether two labellings tell the same items apart."""
    return len(set(one)) == len(set(other)) == len(set(zip(one, other, strict=True)))


@pytest.mark.system("weisfeiler-lehman", "test")
def test_colours_tell_apart_what_the_hashes_of_networkx_do() -> None:
    """networkx starts from degrees, our first round. All nodes of all graphs up to five nodes at once."""
    graphs = [*graph_atlas_g()[1:53], *some_graphs()]
    links = join(graphs)
    hashes = [nx.weisfeiler_lehman_subgraph_hashes(graph, iterations=4) for graph in graphs]
    for rounds in (1, 2, 4):
        ours = colour_nodes(links, rounds).tolist()
        theirs = [found[v][rounds - 1] for graph, found in zip(graphs, hashes, strict=True) for v in graph]
        assert same_partition(ours, theirs)


@pytest.mark.system("weisfeiler-lehman", "test")
def test_graphs_are_told_apart_where_the_hashes_differ() -> None:
    """All graphs of up to six nodes, at once and by pairs."""
    graphs = graph_atlas_g()[1:209]
    ours = classify_graphs(join(graphs)).tolist()
    theirs = [nx.weisfeiler_lehman_graph_hash(graph, iterations=6) for graph in graphs]
    assert same_partition(ours, theirs)
    for i, j in list(combinations(range(len(graphs)), 2))[::211]:
        answer = compare(links_of(graphs[i]), links_of(graphs[j]))
        assert answer == ("undecided" if ours[i] == ours[j] else "different")


@pytest.mark.system("weisfeiler-lehman", "test")
def test_the_pair_that_it_cannot_separate() -> None:
    """A ring of six and two triangles are not isomorphic, and still "undecided"; a path and a star differ."""
    ring, triangles = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    assert not nx.is_isomorphic(ring, triangles)
    assert compare(links_of(ring), links_of(triangles)) == "undecided"
    assert compare(links_of(nx.path_graph(6)), links_of(nx.star_graph(5))) == "different"
    assert compare(links_of(nx.path_graph(6)), links_of(nx.star_graph(5)), rounds=0) == "undecided"
    marked = torch.tensor([1, 0, 0, 0, 0, 0])
    assert compare(links_of(ring), links_of(triangles), colours=(marked, marked)) == "different"


@pytest.mark.system("weisfeiler-lehman", "isomorphic")
def test_isomorphic_graphs_are_never_called_different() -> None:
    for i, graph in enumerate([*graph_atlas_g()[1:209:5], *some_graphs(), nx.gnp_random_graph(60, 0.1, seed=3)]):
        links, random = links_of(graph), torch.Generator().manual_seed(i)
        to = torch.randperm(links.n, generator=random)
        other = permuted(links, to)
        assert is_isomorphism(links, other, to)
        assert compare(links, other) == "undecided"
        colours, moved = torch.randint(3, (links.n,), generator=random), torch.empty_like(to)
        moved[to] = colours
        assert compare(links, other, colours=(colours, moved)) == "undecided"


def test_what_is_no_isomorphism() -> None:
    path, star = links_of(nx.path_graph(4)), links_of(nx.star_graph(3))
    same = torch.arange(4)
    assert is_isomorphism(path, path, same.flip(0))
    assert not is_isomorphism(path, star, same)
    assert not is_isomorphism(path, path, torch.tensor([0, 1, 1, 2]))
    assert not is_isomorphism(path, path, torch.tensor([1, 0, 2, 3]))
    assert not is_isomorphism(path, links_of(nx.path_graph(5)), same)


def test_names_of_sequences() -> None:
    """All sequences of up to four of three letters have a name of their own, and equal ones the same."""
    words = [word for n in range(5) for word in product(range(3), repeat=n)] * 2
    items = torch.tensor([letter for word in words for letter in word])
    owner = torch.tensor([i for i, word in enumerate(words) for _ in word])
    assert same_partition(name_sequences(items, owner, len(words)).tolist(), list(words))


@pytest.mark.system("weisfeiler-lehman", "aggregators")
def test_the_sum_separates_multisets_that_mean_and_max_do_not() -> None:
    """After one-hot codes the sum separates all multisets, as counts do; mean keeps shares, max which there are."""
    words = sorted({tuple(sorted(word)) for n in range(1, 5) for word in product(range(3), repeat=n)})
    codes = torch.nn.functional.one_hot(torch.tensor([x for word in words for x in word])).float()
    owner = torch.tensor([i for i, word in enumerate(words) for _ in word])
    kinds = {}
    for name, aggregate in (("sum", sum_groups), ("mean", mean_groups), ("max", max_groups)):
        kinds[name] = [tuple(row) for row in aggregate(codes, owner, len(words)).round(decimals=4).tolist()]
    assert same_partition(kinds["sum"], list(words))
    shares = [tuple(round(word.count(x) / len(word), 4) for x in range(3)) for word in words]
    assert same_partition(kinds["mean"], list(shares))
    assert same_partition(kinds["max"], [tuple(sorted(set(word))) for word in words])
    assert len(set(kinds["sum"])) > len(set(kinds["mean"])) > len(set(kinds["max"]))
    raw = torch.tensor([1.0, 3.0, 2.0, 2.0])
    assert sum_groups(raw, torch.tensor([0, 0, 1, 1]), 2).unique().numel() == 1  # {1, 3} and {2, 2}, without codes
