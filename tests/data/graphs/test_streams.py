"""Graphs in streams: shuffled, cut, joined, resumed, on two processes; one graph at every step."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.data.graphs.repeated import Repeated
from descend.data.graphs.source import NodeSource
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.batches import join_batches, take_examples
from descend.ops.graph.batches import read_graph
from tests.data.graphs.test_attributed import graphs

Batch = dict[str, Tensor]
WHOLE = graphs(10)


def same(ours: Batch, theirs: Batch) -> bool:
    return set(ours) == set(theirs) and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.system("graph-data-structure", "batched")
@pytest.mark.parametrize("size", [1, 3, 4, 10])
def test_every_graph_once_an_epoch_and_whole(size: int) -> None:
    stream = Shuffled(WHOLE.arrays, size, seed=2)
    seen = []
    for _ in range(10):
        batch = next(stream)
        assert same(batch, take_examples({**WHOLE.arrays}, batch["ids"]))
        read_graph(batch)
        seen += batch["ids"].tolist()
    assert all(sorted(seen[i : i + 10]) == list(range(10)) for i in range(0, len(seen) - 9, 10))


@pytest.mark.system("graph-data-structure", "batched")
def test_micro_batches_and_processes_are_the_batch() -> None:
    """2 processes of 2 micro-batches of 2 graphs: the 8 graphs of a step, also over the end of an epoch."""
    whole = Shuffled(WHOLE.arrays, 8, seed=1)
    ranks = [Shuffled(WHOLE.arrays, 4, seed=1, rank=r, world=2) for r in range(2)]
    micro = Shuffled(WHOLE.arrays, 2, seed=1)
    for _ in range(5):
        batch = next(whole)
        assert same(join_batches([next(micro) for _ in range(4)]), batch)
        assert same(join_batches([next(ranks[k % 2]) for k in range(4)]), batch)


@pytest.mark.system("graph-data-structure", "batched")
@pytest.mark.parametrize("before", [0, 1, 4, 7])
def test_exact_after_a_resume(before: int) -> None:
    stream, again = (Shuffled(WHOLE.arrays, 3, seed=4) for _ in range(2))
    for _ in range(before):
        next(stream)
    again.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    assert all(same(next(stream), next(again)) for _ in range(6))


def test_in_order_any_batch_size_gives_the_same_graphs() -> None:
    for size in (1, 4, 100):
        assert same(join_batches(list(InOrder(WHOLE.arrays, size))), {**WHOLE.arrays})


def test_one_graph_comes_as_the_very_same_tensors() -> None:
    splits = NodeSource().read()
    stream: Any = Repeated(splits.batch("train"))
    one, two = next(stream), next(stream)
    assert all(one[name] is two[name] for name in one)
    parts = [splits.batch(part) for part in ("train", "valid", "test")]
    for name in ("nodes", "nodes_owner", "edges", "edges_owner"):
        assert parts[0][name] is parts[1][name] is parts[2][name]
    labelled = torch.stack([part["y"] >= 0 for part in parts])
    assert (labelled.sum(dim=0) == 1).all()
    stream.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    one["y"] = torch.zeros(0)
    assert next(stream)["y"] is two["y"]
