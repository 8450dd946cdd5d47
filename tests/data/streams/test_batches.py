from __future__ import annotations

from itertools import pairwise

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.batches import count_examples, join_batches, slice_examples, take_examples
from descend.data.streams.sliced import Sliced
from descend.engine.hardware import move_batch
from tests.engine.test_training import Repeat

COUNTS = st.lists(st.integers(0, 4), min_size=1, max_size=7)


def graphs(counts: list[int]) -> dict[str, Tensor]:
    """Example i has counts[i] nodes; a node's first number is its example, the second its place there."""
    owner = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    place = torch.cat([torch.arange(k) for k in counts]) if sum(counts) else torch.zeros(0, dtype=torch.long)
    n = len(counts)
    return {"y": torch.arange(n) * 10, "nodes": torch.stack([owner, place], 1), "nodes_owner": owner,
            "ids": torch.arange(n)}  # fmt: skip


def check(batch: dict[str, Tensor], counts: list[int], rows: list[int]) -> None:
    """Each example has its own nodes, in order, and their owner is its place in the batch."""
    assert batch["ids"].tolist() == rows
    assert batch["y"].tolist() == [10 * row for row in rows]
    assert batch["nodes_owner"].tolist() == [i for i, row in enumerate(rows) for _ in range(counts[row])]
    assert batch["nodes"].tolist() == [[row, k] for row in rows for k in range(counts[row])]


@given(counts=COUNTS, data=st.data())
@settings(max_examples=25, deadline=None)
def test_examples_take_their_items_along(counts: list[int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(counts) - 1), max_size=8))
    check(take_examples(graphs(counts), torch.tensor(rows, dtype=torch.long)), counts, rows)


@given(counts=COUNTS, data=st.data())
@settings(max_examples=25, deadline=None)
def test_cut_and_joined_is_the_batch(counts: list[int], data: st.DataObject) -> None:
    batch, n = graphs(counts), len(counts)
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=3))})
    pieces = [slice_examples(batch, a, b) for a, b in pairwise(cuts)]
    assert sum(map(count_examples, pieces)) == n
    again = join_batches(pieces)
    assert all(torch.equal(again[name], batch[name]) for name in batch)


def test_streams_hand_out_ragged_batches() -> None:
    counts = [3, 0, 2, 1, 4]
    data = graphs(counts)
    seen: list[int] = []
    stream = Shuffled(data, 3, seed=1)
    for _ in range(5):
        batch = next(stream)
        check(batch, counts, batch["ids"].tolist())
        seen += batch["ids"].tolist()
    assert sorted(seen) == sorted(3 * list(range(5)))
    for batch in InOrder(data, 2):
        check(batch, counts, batch["ids"].tolist())


def test_slices_for_micro_batches_and_processes() -> None:
    counts = [3, 0, 2, 1]
    rows = [[0, 1], [2, 3]]
    for rank in range(2):
        check(next(Sliced(Repeat(graphs(counts)), 4, 1, rank, 2)), counts, rows[rank])
    stream = Sliced(Repeat(graphs(counts)), 4, 2)
    for expected in rows:
        check(next(stream), counts, expected)
    assert move_batch(graphs(counts), torch.device("cpu"))["nodes"].shape == (6, 2)
