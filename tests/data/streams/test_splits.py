"""Groups stay whole, shares are kept as nearly as they can be, and what is in two parts is found."""

from __future__ import annotations

import pytest
import torch

from descend.data.streams.splits import describe_leaks, find_leaks, keep_together, split_by_group


@pytest.mark.parametrize("size", [1, 5, 20])
def test_no_group_is_in_two_parts_and_the_shares_are_kept(size: int) -> None:
    groups = [i // size for i in range(1000)]
    test, valid, rest = split_by_group(groups, (0.1, 0.2))
    assert torch.cat([test, valid, rest]).sort().values.tolist() == list(range(1000))
    seen = [{groups[i] for i in part.tolist()} for part in (test, valid, rest)]
    assert not seen[0] & seen[1] | seen[0] & seen[2] | seen[1] & seen[2]
    assert [len(test), len(valid)] == pytest.approx([100, 200], abs=size / 2)


def test_a_group_larger_than_a_share_goes_to_training() -> None:
    test, _ = split_by_group(["a"] * 90 + list(range(10)), (0.1,))
    assert 0 not in test.tolist()
    assert 4 <= len(test) <= 10


def test_parts_are_always_the_same() -> None:
    groups = [i % 40 for i in range(200)]
    assert all(torch.equal(a, b) for a, b in zip(*(split_by_group(groups, (0.1, 0.1)) for _ in range(2)), strict=True))


def test_what_is_taught_and_asked_is_a_leak() -> None:
    records = ["a", "b", "c", "a", "d", "b"]
    parts = {"train": torch.tensor([0, 1]), "valid": torch.tensor([2, 3]), "test": torch.tensor([4])}
    assert find_leaks(records, parts) == {"valid": [3]}
    assert find_leaks(records, {**parts, "test": torch.tensor([4, 5])}) == {"valid": [3], "test": [5]}
    assert describe_leaks(records, parts) == {"in training too": "1 of 2 valid records"}
    assert describe_leaks(list("abcdef"), parts) == {}


def test_equal_records_go_where_the_first_is() -> None:
    parts = [torch.tensor([0, 3]), torch.tensor([1, 4]), torch.tensor([2, 5])]
    assert [rows.tolist() for rows in keep_together(list("abcdab"), parts)] == [[0, 3, 4], [1, 5], [2]]
    assert all(torch.equal(a, b) for a, b in zip(keep_together(list("abcdef"), parts), parts, strict=True))
