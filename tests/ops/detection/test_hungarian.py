from __future__ import annotations

from itertools import permutations

import pytest
import torch
from scipy.optimize import linear_sum_assignment

from descend.errors import Mistake
from descend.ops.detection import hungarian
from descend.ops.detection.hungarian import assign, assign_all, assign_in_turn, greedy_assign, total_cost
from tests.close import close

SIZES = [(1, 1), (3, 7), (7, 3), (30, 30), (60, 12), (0, 3), (3, 0)]


def costs(n: int, m: int, seed: int, ties: bool) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    real = torch.randn(n, m, generator=random, dtype=torch.float64)
    return real.round() if ties else real


@pytest.mark.system("hungarian-matching")
@pytest.mark.system("hungarian-matching", "scipy")
@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("native", [False, True])
def test_assign_is_scipys(n: int, m: int, ties: bool, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(hungarian, "assign_columns", lambda *_: None)
    for seed in range(5):
        cost = costs(n, m, seed, ties)
        rows, columns = assign(cost)
        theirs = linear_sum_assignment(cost.numpy())
        assert abs(float(total_cost(cost, rows, columns)) - cost.numpy()[theirs].sum()) < 1e-9
        assert len(set(columns.tolist())) == len(rows) == min(n, m)
        assert (rows.diff() > 0).all()
        if not ties:
            assert [rows.tolist(), columns.tolist()] == [x.tolist() for x in theirs]


@pytest.mark.system("hungarian-matching", "brute-force")
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 5), (5, 3)])
def test_assign_is_brute_force(n: int, m: int) -> None:
    cost = costs(n, m, 9, False)
    small, large = (cost, m) if n <= m else (cost.T, n)
    best = min(float(small[range(len(small)), list(p)].sum()) for p in permutations(range(large), len(small)))
    close(total_cost(cost, *assign(cost)), torch.tensor(best, dtype=torch.float64))


@pytest.mark.system("hungarian-matching", "batched")
def test_assign_all_is_assign_of_each_image() -> None:
    cost = torch.randn(5, 8, 10, generator=torch.Generator().manual_seed(0))
    counts = torch.tensor([0, 1, 6, 8, 10])
    cost[2, :, 6:] = float("nan")  # what pads is not looked at
    found = assign_all(cost, counts)
    for image, count in enumerate(counts.tolist()):
        expected = torch.full((10,), -1)
        rows, columns = assign(cost[image, :, :count])
        expected[columns] = rows
        assert torch.equal(found[image], expected)
    assert torch.equal(assign_in_turn(cost.double(), counts), found)


@pytest.mark.system("hungarian-matching", "greedy")
def test_greedy_is_never_better() -> None:
    gaps = []
    for seed in range(30):
        cost = costs(6, 4, seed, False)
        rows, columns = greedy_assign(cost)
        assert len(set(rows.tolist())) == len(set(columns.tolist())) == 4
        assert (cost[rows, columns].diff() >= 0).all()
        gaps.append(float(total_cost(cost, rows, columns) - total_cost(cost, *assign(cost))))
    assert min(gaps) >= -1e-9
    assert max(gaps) > 0.1


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_costs_that_are_not_finite(bad: float) -> None:
    cost = torch.zeros(2, 3)
    cost[1, 2] = bad
    with pytest.raises(Mistake, match=r"at \[0, 1, 2\]"):
        assign(cost)
