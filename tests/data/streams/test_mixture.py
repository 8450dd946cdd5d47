from __future__ import annotations

import pytest
import torch

from descend.data.streams.arrays import Shuffled
from descend.data.streams.mixture import (
    BLOCK,
    Mixture,
    Stage,
    check_shares,
    choose_sources,
    describe_mixture,
    share_by_size,
)
from descend.data.text.plain import Windows
from descend.errors import Mistake
from tests.close import close

LLAMA = {
    "CommonCrawl": 67,
    "C4": 15,
    "GitHub": 4.5,
    "Wikipedia": 4.5,
    "Books": 4.5,
    "ArXiv": 2.5,
    "StackExchange": 2,
}
NAMES = ["a", "b", "c"]


def sources(n: int = 40) -> dict[str, Shuffled]:
    """Three sources of n examples; an example of source i is 100 i + its row."""
    return {name: Shuffled({"x": 100 * i + torch.arange(n)}, 1, seed=i) for i, name in enumerate(NAMES)}


def mixture(batch: int, *stages: Stage, rank: int = 0, world: int = 1) -> Mixture:
    return Mixture(sources(), stages or (Stage({"a": 0.5, "b": 0.3, "c": 0.2}),), batch, 7, rank, world)


@pytest.mark.system("data-mixture-sampler")
@pytest.mark.system("data-mixture-sampler", "proportions")
def test_every_block_has_the_percentages_of_llama() -> None:
    p = check_shares(LLAMA, list(LLAMA))
    close(p.sum(), torch.tensor(1.0, dtype=torch.float64))
    chosen = choose_sources(p, 0, 20 * BLOCK, 0).view(20, BLOCK)
    for block in chosen:
        assert torch.bincount(block, minlength=7).tolist() == [670, 150, 45, 45, 45, 25, 20]
    assert not torch.equal(chosen[0], chosen[1])


@pytest.mark.system("data-mixture-sampler", "proportions")
def test_shares_that_no_block_can_hold_are_right_on_the_whole() -> None:
    p = torch.tensor([1 / 3, 1 / 7, 1 - 1 / 3 - 1 / 7], dtype=torch.float64)
    counts = torch.stack([torch.bincount(choose_sources(p, k * BLOCK, (k + 1) * BLOCK, 3)) for k in range(400)])
    assert (counts - BLOCK * p).abs().max() < 1
    assert (counts.double().mean(0) - BLOCK * p).abs().max() < 4 * 0.5 / 400**0.5


@pytest.mark.system("data-mixture-sampler", "stages")
def test_each_stage_has_its_own_shares() -> None:
    stages = Stage({"a": 0.8, "b": 0.2}, 2000), Stage({"b": 10, "c": 90}, 5000), Stage({"c": 1.0})
    stream = mixture(100, *stages)
    batches = [next(stream) for _ in range(60)]
    source, stage = (torch.cat([batch[name] for batch in batches]) for name in ("source", "stage"))
    assert torch.bincount(stage).tolist() == [2000, 3000, 1000]
    assert [torch.bincount(source[stage == s], minlength=3).tolist() for s in range(3)] == [
        [1600, 400, 0],
        [0, 300, 2700],
        [0, 0, 1000],
    ]


def test_a_stage_may_end_inside_a_batch() -> None:
    stream = mixture(8, Stage({"a": 1.0}, 11), Stage({"c": 1.0}))
    next(stream)
    batch = next(stream)
    assert batch["source"].tolist() == [0, 0, 0, 2, 2, 2, 2, 2]
    assert (batch["x"] // 100).tolist() == batch["source"].tolist()


@pytest.mark.system("data-mixture-sampler", "epochs")
def test_every_source_goes_through_its_own_epochs() -> None:
    stream = mixture(10)
    x = torch.cat([next(stream)["x"] for _ in range(100)])
    for i, count in enumerate((500, 300, 200)):
        mine = x[x // 100 == i] - 100 * i
        assert len(mine) == count
        whole = mine[: count // 40 * 40].view(-1, 40).sort(1).values
        assert torch.equal(whole, torch.arange(40).expand_as(whole))


@pytest.mark.system("data-mixture-sampler", "exact")
def test_micro_batches_and_processes_share_the_mixture() -> None:
    whole, micro = mixture(12), mixture(4)
    ranks = [mixture(12, rank=r, world=3) for r in range(3)]
    for _ in range(30):
        batch = next(whole)
        for parts in ([next(micro) for _ in range(3)], [next(rank) for rank in ranks]):
            for name in batch:
                assert torch.equal(torch.cat([part[name] for part in parts]), batch[name])


@pytest.mark.system("data-mixture-sampler", "exact")
def test_a_mixture_goes_on_where_it_was() -> None:
    stages = Stage({"a": 0.8, "b": 0.2}, 50), Stage({"b": 0.1, "c": 0.9})
    one, two = mixture(8, *stages), mixture(8, *stages)
    for step in range(20):
        if step % 5 == 0:
            two = mixture(8, *stages)
            two.load_state_dict(one.state_dict())
        a, b = next(one), next(two)
        assert all(torch.equal(a[name], b[name]) for name in a)


def test_windows_of_texts_are_mixed() -> None:
    text = {"low": torch.arange(200, dtype=torch.int32), "high": torch.arange(1000, 1400, dtype=torch.int32)}
    windows = {name: Windows(tokens, 8, 1, seed=0) for name, tokens in text.items()}
    batch = next(Mixture(windows, [Stage({"low": 0.5, "high": 0.5})], 16))
    assert torch.equal(batch["y"], batch["x"] + 1)
    assert torch.equal((batch["x"][:, 0] >= 1000).long(), batch["source"])


def test_take_is_what_the_stream_gives() -> None:
    stream, asked = Windows(torch.arange(100), 4, 5, seed=3), Windows(torch.arange(100), 4, 5, seed=3)
    batches = [next(stream)["ids"] for _ in range(9)]
    assert torch.equal(torch.cat(batches), asked.take(0, 45)["ids"])
    assert torch.equal(batches[7], asked.take(35, 40)["ids"])


@pytest.mark.system("data-mixture-sampler", "temperature")
def test_a_temperature_evens_out_the_sizes() -> None:
    sizes = {"large": 900, "small": 100}
    close(torch.tensor([*share_by_size(sizes).values()]), torch.tensor([0.9, 0.1]))
    close(torch.tensor([*share_by_size(sizes, 2.0).values()]), torch.tensor([0.75, 0.25]))
    assert abs(share_by_size(sizes, 1e6)["small"] - 0.5) < 1e-5
    with pytest.raises(Mistake, match="'none' is empty"):
        share_by_size({"none": 0})


def test_a_run_tells_shares_and_epochs() -> None:
    stream = mixture(10, Stage({"a": 0.5, "b": 0.5}, 80), Stage({"a": 1.0}))
    told = describe_mixture(stream, dict.fromkeys(NAMES, 40), 120)
    assert told["source a"] == "50%, then 100%; 2 epochs of 40"
    assert told["source c"] == "0%, then 0%; 0 epochs of 40"


@pytest.mark.system("data-mixture-sampler", "checked")
@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"a": 0.5, "b": 0.6}, "sum to 1.1"),
        ({"a": 67, "b": 15}, "sum to 82"),
        ({"a": 1.5, "b": -0.5}, "b=-0.5: a share is 0 or more"),
        ({"a": 0.5, "bb": 0.5}, "no source 'bb'. Did you mean 'b'"),
        ({"a": float("nan")}, "a=nan"),
    ],
)
def test_wrong_shares_are_named(shares: dict[str, float], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        check_shares(shares, NAMES)


def test_stages_out_of_order_and_other_sources_are_named() -> None:
    with pytest.raises(Mistake, match="one after the other"):
        mixture(4, Stage({"a": 1.0}, 10), Stage({"b": 1.0}, 10), Stage({"c": 1.0}))
    with pytest.raises(Mistake, match="mixes a, z"):
        mixture(4).load_state_dict({"place": 0, "drawn": {"a": 1, "z": 2}})
