"""Backups against sums over the arrays, and which states lead where."""

from __future__ import annotations

import pytest
import torch

from descend.data.control.gridworlds import build_gridworld
from descend.errors import Mistake
from descend.ops.decisions.bellman import (
    action_values,
    as_policy,
    distance_to_end,
    greedy,
    reachable,
    require_policy,
    state_values,
    uniform_policy,
)
from descend.ops.decisions.process import process_from_arrays
from tests.close import close
from tests.ops.decisions.test_process import random_arrays


def test_one_step_and_then_v() -> None:
    p, r = random_arrays()
    process = process_from_arrays(p, r, 0.9)
    v = torch.arange(6.0).double()
    close(action_values(process, v), (p * (r + 0.9 * v)).sum(-1))
    q = action_values(process, v)
    close(state_values(q, uniform_policy(process)), q.mean(1))


def test_reach_and_distance() -> None:
    process = build_gridworld(["S.#.", "..#G"], 1.0)
    assert reachable(process).view(2, 4).tolist() == [[True, True, False, False]] * 2
    every = torch.ones(8, 4, dtype=torch.bool)
    assert distance_to_end(process, every).view(2, 4).tolist() == [[-1, -1, 1, 1]] * 2
    only_left = torch.zeros(8, 4, dtype=torch.bool)
    only_left[:, 0] = True
    assert distance_to_end(process, only_left)[3] == -1
    corridor = build_gridworld(["S..G"], 1.0)
    assert distance_to_end(corridor, torch.ones(4, 4, dtype=torch.bool)).tolist() == [3, 2, 1, 1]


def test_equally_good_moves_go_towards_the_end() -> None:
    """With γ = 1 every cell of free ground is worth 1 and all moves tie; the first would walk into the wall."""
    process = build_gridworld(["...", "S.G"], 1.0)
    q = torch.ones(6, 4, dtype=torch.float64)
    policy = greedy(process, q)
    assert (distance_to_end(process, as_policy(policy, 4) > 0) > 0).all()
    assert [process.action_names[a] for a in policy[3:5].tolist()] == ["right", "right"]


def test_a_policy_is_a_distribution() -> None:
    process = build_gridworld(["S.G"], 0.9)
    with pytest.raises(Mistake, match=r"a policy is a table \(3, 4\), not \(3,\)"):
        require_policy(process, torch.zeros(3))
    bad = uniform_policy(process)
    bad[1, 0] = 0.5
    with pytest.raises(Mistake, match=r"state 1: the policy gives .* which is no distribution"):
        require_policy(process, bad)
