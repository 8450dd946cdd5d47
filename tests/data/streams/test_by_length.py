from __future__ import annotations

import torch

from descend.data.streams.by_length import POOL, ByLength, group_by_length


def lengths(n: int) -> torch.Tensor:
    return torch.randint(1, 60, (n,), generator=torch.Generator().manual_seed(0))


def test_every_example_comes_once_an_epoch() -> None:
    stream = ByLength({"x": torch.arange(103)}, lengths(103), 8, 8, seed=3)
    first = torch.cat([next(stream)["x"] for _ in range(13)])  # 12 whole batches, and one over the epoch's end
    assert first[:103].sort().values.tolist() == list(range(103))
    assert stream.epoch(0)[0].tolist() != stream.epoch(1)[0].tolist()


def test_a_group_holds_like_lengths_in_a_random_order() -> None:
    n, group = 2 * POOL * 16, 16
    length = lengths(n)
    order = group_by_length(torch.randperm(n), length, group, torch.Generator().manual_seed(1))
    groups = length[order].view(-1, group)
    padded = (groups.amax(1) * group).sum() / length.sum()
    shuffled = (length.view(-1, group).amax(1) * group).sum() / length.sum()
    assert padded < 1.05 < 1.5 < shuffled
    assert not torch.equal(groups.amax(1), groups.amax(1).sort().values)


def test_micro_batches_and_processes_share_the_groups_of_the_whole_batch() -> None:
    data, length = {"x": torch.arange(200)}, lengths(200)
    whole = next(ByLength(data, length, 8, 8, seed=0))["x"].tolist()
    micro = ByLength(data, length, 8, 4, seed=0)
    assert next(micro)["x"].tolist() + next(micro)["x"].tolist() == whole
    ranks = [next(ByLength(data, length, 8, 8, 0, rank, 2))["x"].tolist() for rank in (0, 1)]
    assert ranks[0] + ranks[1] == whole


def test_a_stream_goes_on_where_it_was() -> None:
    data, length = {"x": torch.arange(50)}, lengths(50)
    one, two = (ByLength(data, length, 4, 4, seed=5) for _ in range(2))
    for _ in range(17):
        next(one)
    two.load_state_dict(one.state_dict())
    assert next(one)["x"].tolist() == next(two)["x"].tolist()


def test_a_group_has_the_class_shares_of_the_whole_where_length_tells_the_classes_apart() -> None:
    n, group, random = 40 * 64, 64, torch.Generator().manual_seed(0)
    spam = torch.rand(n, generator=random) < 0.13
    length = torch.where(spam, 30, 12) + torch.randint(0, 12, (n,), generator=random)
    order = torch.randperm(n, generator=random)
    one_sided = spam[group_by_length(order, length, group, random)].view(-1, group).sum(1)
    shares = spam[group_by_length(order, length, group, random, spam.long())].view(-1, group).sum(1)
    assert (one_sided == 0).sum() > 20
    assert (shares - spam.sum() / 40).abs().max() <= 1  # at random the deviation would be 2.7


def test_classes_cost_little_padding() -> None:
    n, group, random = 40 * 64, 64, torch.Generator().manual_seed(0)
    classes, length = torch.randint(0, 4, (n,), generator=random), lengths(n)
    order = torch.randperm(n, generator=random)
    groups = length[group_by_length(order, length, group, random, classes)].view(-1, group)
    assert (groups.amax(1) * group).sum() / length.sum() < 1.06
