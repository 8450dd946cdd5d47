"""Links held out: no leak, negatives by seed and step, and the score that follows from degrees alone."""

from __future__ import annotations

import json

import networkx as nx
import pytest
import torch
from torch import Tensor

from descend.data.graphs.attributed import AttributedGraph, link
from descend.data.graphs.embedded import load_planted
from descend.data.graphs.karate import load_karate
from descend.data.graphs.links import LinkBatches, LinkSplits, cut_links, draw_unlinked, key_pairs
from descend.data.graphs.source import LinkSource
from descend.errors import Mistake
from descend.ops.graph.batches import read_graph
from tests.data.graphs.test_attributed import random_graph

PLANTED = load_planted(300)


def keys(pairs: Tensor, graph: AttributedGraph) -> set[int]:
    return set(key_pairs(pairs, len(graph), graph.directed).tolist())


def cut(directed: bool = False) -> tuple[AttributedGraph, LinkSplits]:
    graph = random_graph(60, 1, directed)
    return graph, cut_links(graph, tuple(map(str, range(60))), 0.1, 0.2)


@pytest.mark.parametrize("directed", [False, True])
def test_held_out_links_are_in_no_message(directed: bool) -> None:
    """Neither they nor, without directions, their reverses; negatives are no link of any part."""
    graph, splits = cut(directed)
    train, valid, test = (keys(part, graph) for part in (splits.train, splits.valid.positive, splits.test.positive))
    assert not train & valid
    assert not train & test
    assert not valid & test
    assert train | valid | test == keys(graph.pairs, graph)
    assert keys(splits.graph.edges, graph) == train
    m = len(graph.pairs)
    assert (len(test), len(valid)) == (round(0.2 * m), round(m * 0.3) - round(0.2 * m))
    for part in (splits.valid, splits.test):
        assert not keys(part.negative, graph) & keys(graph.pairs, graph)
        assert len(part.negative) == len(part.positive)
        assert part.y.tolist() == [1] * len(part.positive) + [0] * len(part.negative)
    messages = read_graph(splits.batch("test")).links.adjacency()
    a, b = splits.test.positive.T
    assert not messages[b, a].any()
    if not directed:
        assert not messages[a, b].any()
    again = cut(directed)[1]
    assert torch.equal(again.test.pairs, splits.test.pairs)


def test_attributes_stay_with_their_links() -> None:
    graph, splits = cut()
    at = {tuple(e): x.tolist() for e, x in zip(graph.edges.tolist(), graph.edge_attributes, strict=True)}
    for edge, x in zip(splits.graph.edges.tolist(), splits.graph.edge_attributes, strict=True):
        assert at[tuple(edge)] == x.tolist()


@pytest.mark.parametrize(("negatives", "hidden"), [(1, 0.0), (3, 0.0), (1, 0.25)])
def test_every_step_has_its_own_negatives(negatives: int, hidden: float) -> None:
    """By seed and step; no training link among them, but a held-out one may be: to spare these would tell of them."""
    graph, splits = cut()
    stream = LinkBatches(splits, 3, negatives, hidden)
    seen = [next(stream) for _ in range(40)]
    predicted = round(hidden * len(splits.train)) or len(splits.train)
    every: set[int] = set()
    for batch in seen:
        assert batch["y"].tolist() == [1] * predicted + [0] * (negatives * predicted)
        assert (batch["pairs_owner"] == 0).all()
        positive, negative = batch["pairs"][:predicted], batch["pairs"][predicted:]
        assert keys(positive, graph) <= keys(splits.train, graph)
        assert not keys(negative, graph) & keys(splits.train, graph)
        assert (negative[:, 0] != negative[:, 1]).all()
        carried = keys(batch["edges"], graph)
        if hidden:
            assert carried == keys(splits.train, graph) - keys(positive, graph)
        else:
            assert batch["edges"] is seen[0]["edges"]
        every |= keys(negative, graph)
    assert every & keys(splits.test.positive, graph)
    assert not torch.equal(seen[0]["pairs"], seen[1]["pairs"])
    again = LinkBatches(splits, 3, negatives, hidden)
    half = LinkBatches(splits, 3, negatives, hidden)
    for _ in range(20):
        next(half)
    again.load_state_dict(json.loads(json.dumps(half.state_dict())))
    assert all(torch.equal(next(again)[name], batch[name]) for batch in seen[20:] for name in ("pairs",))
    assert not torch.equal(next(LinkBatches(splits, 4, negatives, hidden))["pairs"], seen[0]["pairs"])


def test_negatives_are_uniform_among_the_unlinked() -> None:
    """On a path of 5: each of the 6 unlinked pairs equally often."""
    path = torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4]])
    taken = key_pairs(path, 5, False).sort().values
    drawn = draw_unlinked(5, taken, 12_000, torch.Generator().manual_seed(0), False)
    _, counts = key_pairs(drawn, 5, False).unique(return_counts=True)
    assert len(counts) == 6
    assert float((counts - 2000).abs().max()) < 5 * 2000**0.5
    whole = link(torch.zeros(4, 0), torch.tensor([[a, b] for a in range(4) for b in range(a)]))
    with pytest.raises(Mistake, match="nearly all pairs"):
        draw_unlinked(4, key_pairs(whole.pairs, 4, False).sort().values, 1, torch.Generator(), False)


def test_popularity_is_preferential_attachment() -> None:
    splits = cut_links(load_karate().graph, (), 0.1, 0.1)
    theirs = nx.Graph(map(tuple, splits.train.tolist()))
    theirs.add_nodes_from(range(34))
    pairs = [tuple(pair) for pair in splits.test.pairs.tolist()]
    wanted = [score for _, _, score in nx.preferential_attachment(theirs, pairs)]
    assert splits.score_popularity(splits.test.pairs).tolist() == wanted


def test_what_a_source_of_links_says() -> None:
    source = LinkSource(embedded="planted", size=300, hidden=0.2)
    splits = source.read()
    assert splits.facts["training links"] == len(splits.train)
    scarce = LinkSource(embedded="planted", size=300, valid=0.3, test=0.4).read()
    lost = ~torch.isin(torch.arange(300), scarce.graph.edges) & torch.isin(torch.arange(300), PLANTED.graph.edges)
    assert scarce.facts["nodes with held-out links only"] == int(lost.sum()) > 0
    assert splits.graph.nodes.shape == (300, PLANTED.graph.nodes.shape[1])
    assert len(next(source.stream(splits, 0))["pairs"]) == 2 * round(0.2 * len(splits.train))
    degree = LinkSource(embedded="planted", size=300, features="degree")
    seen = torch.bincount(splits.graph.edges[:, 1], minlength=300).float()
    assert torch.equal(degree.read().graph.nodes[:, 0], seen.log1p())  # of the training links alone
    with pytest.raises(Mistake, match=r"--data\.hidden"):
        LinkBatches(splits, hidden=0.0001)
    with pytest.raises(Mistake, match="no link is left"):
        cut_links(link(torch.zeros(3, 0), torch.tensor([[0, 1], [1, 2]])), (), 0.1, 0.1)
    with pytest.raises(Mistake, match=r"--data\.valid"):
        LinkSource(valid=0.0).read()
