"""Sampled neighbours: so many at most, all different, exact when all are taken, right on average, by a key."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.graphs.attributed import AttributedGraph, link
from descend.data.graphs.embedded import load_planted
from descend.data.graphs.sampling import (
    NeighbourBatches,
    Neighbourhoods,
    NeighbourSampler,
    NeighboursInOrder,
    draw_subsets,
    start_keys,
    variance_of_mean,
)
from descend.data.graphs.source import SampledNodeSource
from descend.data.streams.batches import join_batches, slice_examples
from descend.errors import Mistake
from descend.ops.graph.aggregate import max_neighbours, mean_neighbours
from descend.ops.graph.batches import read_graph
from descend.ops.graph.structure import Links
from tests.close import close

PLANTED = load_planted(400)


def sampler(*sizes: int) -> NeighbourSampler:
    return NeighbourSampler(PLANTED.graph, PLANTED.y, sizes)


def first_nodes(batch: Batch) -> Tensor:
    sizes = torch.bincount(batch["nodes_owner"], minlength=len(batch["ids"]))
    return sizes.cumsum(0) - sizes


def sage(x: Tensor, links: Links) -> Tensor:
    """Two layers that look at the node, the mean and the largest of its neighbours."""
    for _ in range(2):
        x = torch.tanh(x - 0.5 * mean_neighbours(x, links) + 0.3 * max_neighbours(x, links))
    return x


@pytest.mark.system("neighbour-sampling", "sizes")
@pytest.mark.parametrize("sizes", [(3,), (5, 2), (2, 3, 1)])
def test_every_hop_has_at_most_so_many_different_neighbours(sizes: tuple[int, ...]) -> None:
    near = Neighbourhoods(PLANTED.graph)
    trees = near.sample(torch.arange(400), sizes, seed=1, epoch=0)
    known: dict[int, set[int]] = {v: set() for v in range(400)}
    for u, v in PLANTED.graph.edges.tolist():
        known[v].add(u)
    counts = torch.bincount(trees.owner, minlength=400)
    start = counts.cumsum(0) - counts
    assert torch.equal(trees.nodes[start], torch.arange(400))
    edges = trees.edges + start[trees.edges_owner][:, None]
    depth = torch.zeros(len(trees.nodes), dtype=torch.long)
    children: dict[int, list[int]] = {i: [] for i in range(len(trees.nodes))}
    for (child, parent), edge in zip(edges.tolist(), trees.edge_ids.tolist(), strict=True):
        depth[child] = depth[parent] + 1
        children[parent].append(int(trees.nodes[child]))
        assert PLANTED.graph.edges[edge].tolist() == [int(trees.nodes[child]), int(trees.nodes[parent])]
    for i, taken in children.items():
        around, hop = known[int(trees.nodes[i])], int(depth[i])
        assert set(taken) <= around
        assert len(set(taken)) == len(taken) == (min(len(around), sizes[hop]) if hop < len(sizes) else 0)


@pytest.mark.system("neighbour-sampling", "exact")
@pytest.mark.parametrize("sizes", [(0, 0), (1000, 1000)])
def test_all_neighbours_give_the_exact_layers(sizes: tuple[int, ...]) -> None:
    whole = read_graph(PLANTED.graph.batch())
    exact = sage(whole.nodes, whole.links)
    batch = sampler(*sizes)(torch.arange(400), 0, 0)
    graph = read_graph(batch)
    close(sage(graph.nodes, graph.links)[first_nodes(batch)], exact)
    few = sampler(3, 3)(torch.arange(400), 0, 0)
    sampled = sage(few["nodes"], read_graph(few).links)[first_nodes(few)]
    assert (sampled - exact).abs().max() > 0.1


def test_directed_graphs_are_walked_against_their_edges() -> None:
    """Messages run from source to target, so a node samples those that lead to it; with their edge's attributes."""
    pairs = torch.tensor([[1, 0], [2, 0], [0, 3], [3, 1]])
    graph = link(torch.arange(4.0)[:, None], pairs, True, torch.arange(4.0)[:, None], torch.tensor([7.0]))
    batch = NeighbourSampler(graph, torch.arange(4), (0, 0))(torch.tensor([0, 2]), 0, 0)
    assert batch["nodes"].flatten().tolist() == [0, 1, 2, 3, 2]
    assert batch["edges"].tolist() == [[1, 0], [2, 0], [3, 1]]
    assert batch["edge_attributes"].flatten().tolist() == [0, 1, 3]
    assert batch["context"].tolist() == [[7], [7]]
    assert batch["y"].tolist() == [0, 2]


@pytest.mark.system("neighbour-sampling")
@pytest.mark.system("neighbour-sampling", "unbiased")
def test_the_sampled_mean_is_right_on_average_and_varies_as_it_must() -> None:
    """2,000 nodes with the same neighbours 1..100, in four epochs: mean 50.5, variance S²/m (1 − m/N)."""
    values, count = torch.arange(1.0, 101), 2000
    nodes = torch.cat([values, torch.zeros(count)])[:, None]
    pairs = torch.cartesian_prod(torch.arange(100), 100 + torch.arange(count))
    sampler = {m: NeighbourSampler(link(nodes, pairs, True), torch.zeros(100 + count).long(), (m,)) for m in (10, 50)}
    for m, each in sampler.items():
        means = []
        for epoch in range(4):
            batch = each(100 + torch.arange(count), 5, epoch)
            means.append(mean_neighbours(batch["nodes"], read_graph(batch).links)[first_nodes(batch), 0])
        found, wanted = torch.cat(means).double(), variance_of_mean(values.double(), m)
        assert abs(float(found.mean()) - 50.5) < 4 * float((wanted / len(found)).sqrt())
        assert float(found.var()) == pytest.approx(float(wanted), rel=5 * (2 / len(found)) ** 0.5)
    assert float(variance_of_mean(values, 100)) == 0


def test_all_subsets_are_equally_likely() -> None:
    """χ² of the 20 subsets of 3 of 6, 20,000 draws: below the 99.9% point of 19 degrees of freedom."""
    keys = start_keys(3, 0, np.arange(20_000))
    found = np.sort(draw_subsets(keys, np.full(20_000, 6), 3), axis=1)
    counts = [int((found == subset).all(axis=1).sum()) for subset in combinations(range(6), 3)]
    assert sum(counts) == 20_000
    assert sum((count - 1000) ** 2 / 1000 for count in counts) < 43.8


@pytest.mark.system("neighbour-sampling", "sizes")
def test_a_tree_belongs_to_seed_epoch_and_node() -> None:
    """Not to what else is in the batch; and another seed or epoch gives another one."""
    near = Neighbourhoods(PLANTED.graph)
    all_ = near.sample(torch.arange(400), (3, 2), 7, 4)
    some = near.sample(torch.tensor([50, 3, 9]), (3, 2), 7, 4)
    for k, node in enumerate((50, 3, 9)):
        assert torch.equal(some.nodes[some.owner == k], all_.nodes[all_.owner == node])
        assert torch.equal(some.edges[some.edges_owner == k], all_.edges[all_.edges_owner == node])
    for seed, epoch in ((8, 4), (7, 5)):
        assert not torch.equal(near.sample(torch.arange(400), (3, 2), seed, epoch).nodes, all_.nodes)


def same(ours: Batch, theirs: Batch) -> bool:
    return set(ours) == set(theirs) and all(torch.equal(ours[name], theirs[name]) for name in ours)


def stream(batch: int, rank: int = 0, world: int = 1) -> NeighbourBatches:
    return NeighbourBatches(sampler(3, 2), torch.arange(100, 121), batch, 1, rank, world)


@pytest.mark.system("neighbour-sampling", "sizes")
def test_batches_are_cut_joined_shared_and_resumed() -> None:
    """21 nodes in steps of 8: over the ends of epochs, whose trees differ."""
    whole, micro, ranks = stream(8), stream(2), [stream(4, r, 2) for r in range(2)]
    again = stream(8)
    seen = []
    for step in range(6):
        if step == 3:
            again.load_state_dict(json.loads(json.dumps(whole.state_dict())))
        batch = next(whole)
        seen += batch["ids"].tolist()
        assert same(join_batches([next(micro) for _ in range(4)]), batch)
        assert same(join_batches([next(ranks[k % 2]) for k in range(4)]), batch)
        assert same(join_batches([slice_examples(batch, 0, 3), slice_examples(batch, 3, 8)]), batch)
        if step >= 3:
            assert same(next(again), batch)
    assert sorted(seen[:21]) == sorted(seen[21:42]) == list(range(100, 121))
    assert seen[:21] != seen[21:42]


def test_held_out_nodes_have_the_same_trees_each_time() -> None:
    rows = torch.arange(10, 60)
    walks = [join_batches(list(NeighboursInOrder(sampler(2, 2), rows, size))) for size in (7, 50)]
    assert same(*walks)
    assert len(NeighboursInOrder(sampler(2, 2), rows, 7)) == 8


def test_a_source_of_samples() -> None:
    source = SampledNodeSource(embedded="planted", size=200, sample=(4, 3))
    splits = source.read()
    batch = next(source.stream(splits, 16, seed=0))
    assert len(batch["ids"]) == len(batch["y"]) == 16
    assert torch.equal(batch["y"], splits.y[batch["ids"]])
    close(batch["nodes"][first_nodes(batch)], splits.graph.nodes[batch["ids"]])
    held = join_batches(list(source.held_out(splits, "test")))
    assert torch.equal(held["ids"], splits.test)
    with pytest.raises(Mistake, match="give how many neighbours"):
        SampledNodeSource(sample=()).sampler(splits)
    with pytest.raises(Mistake, match="--batch 1000 is more than the"):
        source.stream(splits, 1000, seed=0)


def test_a_hub_costs_no_more_than_its_sample() -> None:
    """A node with 200,000 neighbours, among 16 such trees at once: nothing grows with its degree."""
    n = 200_001
    hub = torch.stack([torch.arange(1, n), torch.zeros(n - 1, dtype=torch.long)], 1)
    graph = AttributedGraph(torch.zeros(n, 1), hub, torch.zeros(n - 1, 0), torch.zeros(0), True)
    near = Neighbourhoods(graph)
    trees = near.sample(torch.zeros(16, dtype=torch.long), (25, 10), 0, 0)
    assert len(trees.nodes) == 16 * 26
    assert len(trees.nodes[1:26].unique()) == 25
    assert float(trees.nodes[trees.nodes > 0].double().mean()) == pytest.approx(n / 2, rel=0.25)


@pytest.mark.system("neighbour-sampling", "large")
def test_a_million_edges_are_learned_in_bounded_memory() -> None:
    """GraphSAGE on 100,000 nodes: it learns, and the whole process stays below 2 GB."""
    done = subprocess.run([sys.executable, "-m", "tests.data.graphs.large"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["edges"] >= 1_000_000
    assert found["after"] > 0.7 > 0.4 > found["before"]
    assert found["peak"] < 2 * 10**9
