"""Evaluation and control: solve = sweeps, and three solvers against linear programming on gymnasium's tables."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from descend.classic import dynamic_programming as lab
from descend.classic.dynamic_programming import (
    evaluate_policy,
    iterate_policies,
    iterate_policy,
    iterate_values,
    sweep_policy,
)
from descend.data.control.gridworlds import build_chain, build_gridworld
from descend.data.control.tables import read_env
from descend.errors import Mistake
from descend.ops.decisions.bellman import action_values, as_policy, state_values, uniform_policy
from descend.ops.decisions.process import DecisionProcess, process_from_arrays
from tests.close import close
from tests.ops.decisions.test_process import random_arrays

ENVS = ("FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1", "Taxi-v4")


def solve_program(process: DecisionProcess) -> Tensor:
    """min Σ V so that V(s) ≥ R(s, a) + γ Σ P V, for every pair; what ends leads nowhere."""
    pairs, rows = process.states * process.actions, process.pair.numpy()
    onward = np.zeros((pairs, process.states))
    np.add.at(onward, (rows, process.following.numpy()), process.onward.numpy())
    own = np.repeat(np.eye(process.states), process.actions, axis=0)
    reward = process.expected_reward.flatten().numpy()
    found = linprog(np.ones(process.states), process.gamma * onward - own, -reward, bounds=(None, None))
    assert found.success
    return torch.from_numpy(found.x)


@pytest.mark.system("bellman-evaluation")
@pytest.mark.system("bellman-evaluation", "solve")
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95])
def test_the_solve_is_what_sweeps_come_to(gamma: float) -> None:
    """Both against V = (I − γ P_π)⁻¹ R_π of the arrays; Q is one step more, and V = Σ π Q."""
    p, r = random_arrays()
    process = process_from_arrays(p, r, gamma)
    policy = torch.rand(6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64).softmax(1)
    onward, reward = torch.einsum("sa,sat->st", policy, p), torch.einsum("sa,sat,sat->s", policy, p, r)
    exact = torch.linalg.solve(torch.eye(6).double() - gamma * onward, reward)
    v = evaluate_policy(process, policy)
    close(v, exact)
    close(iterate_policy(process, policy)[0], exact)
    q = action_values(process, v)
    close(q, (p * (r + gamma * v)).sum(-1))
    close(state_values(q, policy), v)


@pytest.mark.system("bellman-evaluation")
@pytest.mark.system("bellman-evaluation", "contraction")
@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_each_sweep_shrinks_the_error_by_gamma(gamma: float) -> None:
    """In the largest coordinate by γ or more; exactly γ where the error is the same everywhere."""
    process = process_from_arrays(*random_arrays(), gamma)
    policy = uniform_policy(process)
    v, goal = torch.randn(6, generator=torch.Generator().manual_seed(0)).double(), evaluate_policy(process, policy)
    for _ in range(20):
        new = sweep_policy(process, policy, v)
        assert (new - goal).abs().max() <= gamma * (v - goal).abs().max() * (1 + 1e-9)
        v = new
    close(sweep_policy(process, policy, goal + 1.0) - goal, torch.full((6,), gamma, dtype=torch.float64))


@pytest.mark.system("bellman-evaluation")
@pytest.mark.system("bellman-evaluation", "control")
@pytest.mark.parametrize("gamma", [0.9, 1.0])
@pytest.mark.parametrize("name", ENVS)
def test_three_solvers_agree_on_gymnasiums_tables(name: str, gamma: float) -> None:
    process, _ = read_env(name, gamma)
    by_policies, by_values = iterate_policies(process), iterate_values(process)
    close(by_policies.v, by_values.v, loosen=10)  # iteration stops at 1e-10 of the reward
    close(by_policies.v, solve_program(process), loosen=100)  # linprog's own tolerance is 1e-7
    close(by_policies.q.amax(1), by_policies.v)
    for found in (by_policies, by_values):
        close(evaluate_policy(process, as_policy(found.policy, process.actions)), by_policies.v, loosen=10)


@pytest.mark.system("bellman-evaluation", "control")
def test_known_optima() -> None:
    """Without a time limit: 14/17 of the walks over slippery ice arrive, and the cliff costs 13 steps."""
    for name, best in (("FrozenLake-v1", 14 / 17), ("CliffWalking-v1", -13.0)):
        process, _ = read_env(name, 1.0)
        for solve in (iterate_policies, iterate_values):
            close((process.start * solve(process).v).sum(), torch.tensor(best, dtype=torch.float64))


def test_with_gamma_1_the_chain_is_the_gamblers_ruin() -> None:
    """A chain that is walked "on" slips back with probability 0.3; all the same it arrives with probability 1."""
    process = build_chain(5, 1.0, slip=0.3)
    on = as_policy(torch.ones(5, dtype=torch.long), 2)
    close(evaluate_policy(process, on), torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0], dtype=torch.float64))
    close(iterate_policy(process, on)[0], evaluate_policy(process, on), loosen=10)


@pytest.mark.parametrize("solve", [evaluate_policy, iterate_policy])
def test_with_gamma_1_a_policy_that_never_ends_is_refused(solve) -> None:  # type: ignore[no-untyped-def]
    process = build_gridworld(["S.G"], 1.0)
    left = as_policy(torch.zeros(3, dtype=torch.long), 4)
    with pytest.raises(Mistake, match="gamma = 1, but from state 0 this policy never ends, so it has no finite value"):
        solve(process, left)


@pytest.mark.parametrize("step", [0.0, -0.1])
def test_with_gamma_1_ties_do_not_lead_in_circles(step: float) -> None:
    """Every cell is worth the same without a price for steps: a policy that is only greedy might stay for ever."""
    process = build_gridworld(["S..", ".#.", "..G"], 1.0, step=step)
    for solve in (iterate_policies, iterate_values):
        found = solve(process)
        close(found.v[0], torch.tensor(1 + 4 * step, dtype=torch.float64))
        close(evaluate_policy(process, as_policy(found.policy, 4)), found.v)


def test_with_gamma_1_earning_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that pays 1 for staying, and could end."""
    p = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    process = process_from_arrays(p, torch.tensor([[1.0, 0.0], [0.0, 0.0]]), 1.0)
    monkeypatch.setattr(lab, "MOST", 500)
    with pytest.raises(Mistake, match="with gamma = 1 something earns or costs without end; use gamma below 1"):
        iterate_values(process)
    with pytest.raises(Mistake, match="from state 0 this policy never ends"):
        iterate_policies(process)
    close(iterate_policies(process.discounted(0.9)).v, torch.tensor([10.0, 0.0], dtype=torch.float64))


def test_with_gamma_1_there_must_be_a_way_out() -> None:
    process = build_gridworld(["S.#G"], 1.0)
    with pytest.raises(Mistake, match="from state 0 this policy never ends"):
        iterate_policies(process)
