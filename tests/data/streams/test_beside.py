"""Random numbers beside a stream belong to the place of an example, not to the batch."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.beside import BLOCK, Beside, BesideOnce, Blocks, spread_evenly
from descend.seeds import generator

ARRAYS = {"x": torch.arange(10.0)}


def draw(random: torch.Generator, n: int) -> dict[str, Tensor]:
    return {"z": torch.randn(n, 3, generator=random), "t": torch.rand(n, generator=random)}


def beside(batch: int, rank: int = 0, world: int = 1) -> Beside:
    return Beside(Shuffled(ARRAYS, batch, 5, rank, world), draw, 5, rank, world)


def join(batches: list[Batch]) -> Batch:
    return {name: torch.cat([batch[name] for batch in batches]) for name in batches[0]}


def equal(a: Batch, b: Batch) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_however_it_is_cut() -> None:
    whole, halves = beside(8), beside(4)
    assert equal(next(whole), join([next(halves), next(halves)]))
    first, second, one = beside(8, 0, 2), beside(8, 1, 2), beside(8)
    for _ in range(3):
        assert equal(next(one), join([next(first), next(second)]))


def test_a_resumed_stream_goes_on_with_the_same_numbers() -> None:
    stream, again = beside(4), beside(4)
    for _ in range(5):
        next(stream)
    again.load_state_dict(stream.state_dict())
    assert equal(next(stream), next(again))


def test_an_example_brings_other_numbers_each_time_and_other_than_its_order() -> None:
    found = join([next(stream) for stream in [beside(10)] for _ in range(2)])
    assert len(found["t"].unique()) == 20
    assert not torch.equal(found["z"][0], torch.randn(3, generator=generator(5, 0)))


def test_validation_has_the_same_numbers_whatever_the_batches() -> None:
    small, large = BesideOnce(InOrder(ARRAYS, 3), draw), BesideOnce(InOrder(ARRAYS, 10), draw)
    assert equal(join(list(small)), join(list(large)))
    assert equal(join(list(small)), join(list(small)))


def test_blocks_are_bounded_and_joined() -> None:
    blocks = Blocks(lambda random, n: {"z": torch.randn(n, 2**15, generator=random)}, 0)
    assert blocks.rows == BLOCK // 2**15
    across = blocks.take(blocks.rows - 1, blocks.rows + 1)["z"]
    assert torch.equal(across[0], blocks.block(0)["z"][-1])
    assert torch.equal(across[1], blocks.block(1)["z"][0])


def test_spread_evenly() -> None:
    u = spread_evenly(16, generator(0)).sort().values
    assert torch.equal((u * 16).floor(), torch.arange(16.0))
