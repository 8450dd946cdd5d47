"""Streams over arrays: every example once an epoch, exact after a resume, the same however a batch is cut."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from descend.data.streams.arrays import POOL, Drawn, InOrder, Shuffled, check_labels, generator
from descend.errors import Mistake

N = 10
ARRAYS = {"x": 10.0 * torch.arange(N)[:, None], "y": torch.arange(N) % 3}


def ids(stream: Any, batches: int) -> list[int]:
    return torch.cat([next(stream)["ids"] for _ in range(batches)]).tolist()


def noise(random: torch.Generator, n: int) -> dict[str, Tensor]:
    return {"z": torch.randn(n, 2, generator=random)}


@pytest.mark.system("training-loop", "shuffle")
@pytest.mark.parametrize("batch", [1, 3, 4, 10])
def test_each_example_once_an_epoch(batch: int) -> None:
    seen = ids(Shuffled(ARRAYS, batch, seed=5), 3 * N)
    epochs = [seen[i : i + N] for i in range(0, 3 * N, N)]
    assert all(sorted(epoch) == list(range(N)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.system("training-loop", "drop-last")
@pytest.mark.parametrize("micro", [4, 2])
def test_a_dropped_rest_is_another_one_in_each_epoch(micro: int) -> None:
    """10 examples in batches of 4: two batches an epoch, and the last two of the order are left out of it."""
    seen = ids(Shuffled(ARRAYS, micro, seed=5, drop_last=4), 30 * 8 // micro)
    epochs = [seen[i : i + 8] for i in range(0, len(seen), 8)]
    whole = ids(Shuffled(ARRAYS, N, seed=5), 30)
    assert epochs == [whole[i : i + 8] for i in range(0, len(whole), N)]  # the order itself is that of whole epochs
    assert all(len(set(epoch)) == 8 for epoch in epochs)
    assert len({frozenset(range(N)) - set(epoch) for epoch in epochs}) > 5
    assert set(seen) == set(range(N))


def test_a_stream_that_drops_its_rest_resumes_exactly() -> None:
    stream, again = (Shuffled(ARRAYS, 4, seed=3, drop_last=4) for _ in range(2))
    ids(stream, 3)
    again.load_state_dict(stream.state_dict())
    assert ids(stream, 6) == ids(again, 6)
    with pytest.raises(Mistake, match="at most 10"):
        Shuffled(ARRAYS, 4, drop_last=12)


def test_rows_stay_together() -> None:
    stream = Shuffled(ARRAYS, 4)
    for _ in range(6):
        batch = next(stream)
        assert torch.equal(batch["x"][:, 0], 10.0 * batch["ids"])
        assert torch.equal(batch["y"], batch["ids"] % 3)
        assert batch["ids"].dtype == torch.int64


def test_own_ids_are_kept() -> None:
    stream = Shuffled({**ARRAYS, "ids": torch.arange(100, 100 + N)}, N)
    assert sorted(ids(stream, 1)) == list(range(100, 100 + N))


@pytest.mark.system("training-loop", "shuffle")
def test_the_order_is_a_function_of_the_seed() -> None:
    assert ids(Shuffled(ARRAYS, 4, seed=1), 9) == ids(Shuffled(ARRAYS, 4, seed=1), 9)
    assert ids(Shuffled(ARRAYS, 4, seed=1), 9) != ids(Shuffled(ARRAYS, 4, seed=2), 9)


@pytest.mark.system("training-loop", "shuffle")
@pytest.mark.parametrize("kind", ["shuffled", "drawn"])
@pytest.mark.parametrize("before", [0, 1, 2, 3, 7])
def test_exact_after_a_resume(kind: str, before: int) -> None:
    def make() -> Any:
        return Shuffled(ARRAYS, 4, seed=3, chance=2) if kind == "shuffled" else Drawn(noise, 5000, seed=3)

    stream, again = make(), make()
    for _ in range(before):
        next(stream)
    state = stream.state_dict()
    assert set(state) == {"epoch", "position"}
    again.load_state_dict(state)
    for _ in range(4):
        a, b = next(stream), next(again)
        assert a.keys() == b.keys()
        assert all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("kind", ["shuffled", "drawn"])
def test_processes_and_micro_batches_share_one_batch(kind: str) -> None:
    def make(batch: int, rank: int = 0, world: int = 1) -> Any:
        if kind == "shuffled":
            return Shuffled(ARRAYS, batch, 7, rank, world, chance=3)
        return Drawn(noise, batch * 1000, 7, rank, world)

    whole, halves, ranks = make(4), make(2), [make(4, rank, 2) for rank in (0, 1)]
    for _ in range(6):  # 6 × 4 crosses the ends of epochs, also inside a batch
        one = next(whole)
        for parts in ([next(halves), next(halves)], [next(rank) for rank in ranks]):
            assert len({len(part["ids"]) for part in parts}) == 1
            for name in one:
                assert torch.equal(one[name], torch.cat([part[name] for part in parts])), name


def test_chance_is_fresh_each_epoch_and_uniform() -> None:
    stream = Shuffled({"x": torch.zeros(2000)}, 2000, chance=4)
    first, second = next(stream)["u"], next(stream)["u"]
    assert first.shape == (2000, 4)
    assert not torch.equal(first.sort(dim=0).values, second.sort(dim=0).values)
    assert -1 <= first.min() < -0.99 < 0.99 < first.max() < 1
    assert abs(float(first.mean())) < 0.05


def test_draws_are_never_repeated() -> None:
    stream = Drawn(noise, POOL // 2)
    seen = [next(stream) for _ in range(4)]
    assert torch.cat([b["ids"] for b in seen]).tolist() == list(range(2 * POOL))
    assert len(torch.cat([b["z"] for b in seen]).unique(dim=0)) == 2 * POOL


def test_in_order_walks_again_and_again() -> None:
    walk = InOrder(ARRAYS, batch=4)
    for _ in range(2):
        batches = list(walk)
        assert [len(b["ids"]) for b in batches] == [4, 4, 2]
        assert torch.cat([b["ids"] for b in batches]).tolist() == list(range(N))
    assert len(walk) == 3


def test_near_keys_give_unrelated_numbers() -> None:
    a, b, c = (torch.randn(4000, generator=generator(*key)) for key in ((0, 0), (0, 1), (1, 0)))
    correlations = torch.corrcoef(torch.stack([a, b, c]))
    assert correlations.triu(1).abs().max() < 0.06
    assert torch.equal(a, torch.randn(4000, generator=generator(0, 0)))
    torch.randn(2, generator=generator(-1, 3))  # a negative seed is a seed


@pytest.mark.parametrize(
    ("arrays", "batch", "world", "told"),
    [
        (ARRAYS, 11, 1, "--batch 11 is more than the 10 examples"),
        (ARRAYS, 0, 1, "--batch 0: a batch needs at least 1"),
        (ARRAYS, 5, 2, "--batch 5 does not divide evenly among 2 processes"),
        ({"x": torch.zeros(0, 2)}, 1, 1, "the data is empty"),
        ({}, 1, 1, "the data is empty"),
        ({"x": torch.zeros(3), "y": torch.zeros(2)}, 1, 1, r"differ in length \(x 3, y 2\)"),
    ],
)
def test_mistakes(arrays: dict[str, Tensor], batch: int, world: int, told: str) -> None:
    with pytest.raises(Mistake, match=told) as caught:
        Shuffled(arrays, batch, world=world)
    assert "\n" not in str(caught.value)


def test_a_state_of_other_data_is_refused() -> None:
    with pytest.raises(Mistake, match="example 12 of an epoch, but the data has 10"):
        Shuffled(ARRAYS, 2).load_state_dict({"epoch": 0, "position": 12})


@pytest.mark.parametrize("label", [-1, 3, 250])
def test_labels_out_of_range_are_named(label: int) -> None:
    y = torch.tensor([0, 2, 1, label, 0])
    with pytest.raises(Mistake, match=rf"labels.idx: record 3 has label {label}, but the 3 classes are 0\.\.2"):
        check_labels(y, 3, "labels.idx")
    check_labels(y[:3], 3, "labels.idx")
