"""Batches of tokens: within the budget on both sides, every pair once, little padding, the same however cut."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.data.streams.token_budget import TokenBudget, plan_batches
from descend.errors import Mistake

SLUG, N, BUDGET = "length-bucketed-batches", 3000, 900


def lengths(n: int = N, seed: int = 0) -> Tensor:
    """Sources as sentences are long, targets about as long."""
    random = torch.Generator().manual_seed(seed)
    source = (torch.randn(n, generator=random) * 0.5 + 3).exp().clamp(2, 100)
    target = source * (1 + 0.15 * torch.randn(n, generator=random)).clamp(0.5, 1.5)
    return torch.stack([source, target], 1).round().clamp(1, 120).long()


def stream(length: Tensor, parts: int = 1, rank: int = 0, world: int = 1) -> TokenBudget:
    return TokenBudget({"x": torch.arange(len(length))}, length, BUDGET, 3, parts, rank, world)


def epoch(of: TokenBudget) -> list[Tensor]:
    """The rows of the batches of one whole epoch."""
    now = of.place["epoch"]
    found = []
    while of.place["epoch"] == now:
        found.append(next(of)["x"])
    return found


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "budget")
def test_no_batch_has_more_tokens_than_its_budget_on_either_side() -> None:
    length = lengths()
    batches = epoch(stream(length))
    for rows in batches:
        widths = length[rows].amax(0)
        assert (len(rows) * widths <= BUDGET).all()
    filled = torch.tensor([len(rows) * int(length[rows].amax()) for rows in batches]).float() / BUDGET
    assert filled.mean() > 0.9  # a row more would not fit
    with pytest.raises(Mistake, match=r"example 1 has 901 tokens .* --data.budget 900; raise it"):
        stream(torch.tensor([[3, 4], [901, 2], [3, 1000]]))
    with pytest.raises(Mistake, match="at least 1 token"):
        TokenBudget({"x": torch.arange(3)}, lengths(3), 0)
    with pytest.raises(Mistake, match="the data is empty"):
        stream(lengths(0))


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "once")
def test_every_pair_comes_once_an_epoch_in_other_batches() -> None:
    of = stream(lengths())
    one, two = epoch(of), epoch(of)
    for batches in (one, two):
        assert torch.equal(torch.cat(batches).sort().values, torch.arange(N))
    sets = [{frozenset(rows.tolist()) for rows in batches} for batches in (one, two)]
    assert not sets[0] & sets[1]
    sizes = [int(lengths()[rows].amax()) for rows in one]
    assert sizes != sorted(sizes)


@pytest.mark.system(SLUG, "padding")
def test_padding_is_far_below_that_of_batches_by_chance() -> None:
    length = lengths()
    of = stream(length)
    shares = []
    for batches in (of.plan(0), torch.randperm(N, generator=torch.Generator().manual_seed(1)).split(40)):
        cells = sum(len(rows) * int(length[rows].amax(0).sum()) for rows in batches)
        shares.append(1 - int(length.sum()) / cells)
    assert of.padding() == pytest.approx(shares[0])
    assert shares[0] < 0.12 < 0.5 < shares[1]


@pytest.mark.system(SLUG, "exact")
def test_micro_batches_and_processes_share_the_batches() -> None:
    length = lengths()
    whole = epoch(stream(length))
    micro = stream(length, parts=2)
    ranks = [stream(length, rank=r, world=3) for r in range(3)]
    both = [stream(length, parts=2, rank=r, world=2) for r in range(2)]
    for rows in whole:
        assert torch.equal(torch.cat([next(micro)["x"] for _ in range(2)]), rows)
        assert torch.equal(torch.cat([next(rank)["x"] for rank in ranks]), rows)
        assert torch.equal(torch.cat([next(rank)["x"] for _ in range(2) for rank in both]), rows)
    few = torch.full((7, 2), 300)
    with pytest.raises(Mistake, match=r"as few as .* too few for 2 micro-batches of 2 processes"):
        stream(few, parts=2, world=2)


@pytest.mark.system(SLUG, "exact")
def test_it_goes_on_where_it_was() -> None:
    one, two = stream(lengths(200), parts=2), stream(lengths(200), parts=2)
    for step in range(60):
        if step % 7 == 0:
            two = stream(lengths(200), parts=2)
            two.load_state_dict(one.state_dict())
        assert torch.equal(next(one)["x"], next(two)["x"])
    assert one.place["epoch"] > 1
    with pytest.raises(Mistake, match="which this data does not have"):
        one.load_state_dict({"epoch": 0, "batch": 99, "part": 0})


def test_the_last_batch_of_an_epoch_is_not_short() -> None:
    length = torch.full((101, 2), 10)
    sizes = sorted(len(rows) for rows in plan_batches(length, 200, torch.Generator().manual_seed(0)))
    assert sizes == [10, 11, 20, 20, 20, 20]
    assert [len(rows) for rows in plan_batches(length[:7], 200, torch.Generator())] == [7]
    ragged = lengths(500, seed=4)
    for seed in range(30):
        batches = plan_batches(ragged, 300, torch.Generator().manual_seed(seed))
        assert torch.equal(torch.cat(batches).sort().values, torch.arange(500))
        assert all(len(rows) * int(ragged[rows].amax()) <= 300 for rows in batches)
