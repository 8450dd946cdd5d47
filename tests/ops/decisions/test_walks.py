"""Walks follow the probabilities, and their mean return is the exact value."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import chisquare

from descend.classic.dynamic_programming import evaluate_policy, sweep_policy
from descend.data.control.tables import read_env
from descend.ops.decisions.bellman import uniform_policy
from descend.ops.decisions.process import process_from_arrays
from descend.ops.decisions.walks import draw_actions, draw_states, sample_walks, take_step
from descend.seeds import generator
from tests.close import close
from tests.ops.decisions.test_process import random_arrays


def test_steps_follow_the_probabilities() -> None:
    """χ² of s' for every pair, and of the first state and the action."""
    p, r = random_arrays()
    process = process_from_arrays(p, r, 0.9)
    n, random = 4000, generator(0)
    for s in range(6):
        for a in range(3):
            state = torch.full((n,), s)
            step = take_step(process, state, torch.full((n,), a), torch.rand(n, generator=random, dtype=torch.float64))
            counts = torch.bincount(step.following, minlength=6)
            there = p[s, a] > 0
            assert not counts[~there].any()
            close(step.reward, r[s, a, step.following])
            assert chisquare(counts[there], (p[s, a] * n)[there]).pvalue > 1e-3
    begin = torch.bincount(draw_states(process, torch.rand(n, generator=random)), minlength=6)
    assert chisquare(begin).pvalue > 1e-3
    policy = torch.tensor([[0.2, 0.0, 0.8]]).expand(6, 3)
    chosen = torch.bincount(draw_actions(policy, torch.zeros(n, dtype=torch.long), torch.rand(n, generator=random)))
    assert chosen[1] == 0
    assert chisquare(chosen[[0, 2]], [0.2 * n, 0.8 * n]).pvalue > 1e-3


def test_the_ends_of_the_unit_interval_stay_inside_of_the_pair() -> None:
    process = process_from_arrays(*random_arrays(), 0.9)
    pairs = torch.arange(18)
    for u in (0.0, 1.0 - 2**-53, 1.0):
        found = take_step(process, pairs // 3, pairs % 3, torch.full((18,), u, dtype=torch.float64))
        assert (process.transitions()[pairs // 3, pairs % 3, found.following] > 0).all()


@pytest.mark.system("mdp")
@pytest.mark.system("mdp", "monte-carlo")
@pytest.mark.parametrize("seed", range(3))
def test_the_mean_return_is_the_exact_value(seed: int) -> None:
    """Random walks on the ice, to their end: V of the linear solve within 4 standard errors (returns are in 0..1, so
    their variance is at most V). Cut after 5 steps: the value of 5 sweeps."""
    process, _ = read_env("FrozenLake-v1", 0.95)
    policy, begin = uniform_policy(process), torch.arange(16).repeat(1000)
    value = evaluate_policy(process, policy)
    walks = sample_walks(process, policy, begin, 500, generator(seed))
    assert walks.ended.all()
    found = walks.returns(0.95)
    close(found[:, 0], walks.rewards[:, 0] + 0.95 * found[:, 1])
    error = (found[:, 0].view(1000, 16).mean(0) - value).abs()
    assert (error <= 4 * (value / 1000).sqrt()).all()
    assert 0 < float(error.max()) < 0.05
    short = torch.zeros(16, dtype=torch.float64)
    for _ in range(5):
        short = sweep_policy(process, policy, short)
    cut = sample_walks(process, policy, begin, 5, generator(seed)).returns(0.95)[:, 0].view(1000, 16)
    assert ((cut.mean(0) - short).abs() <= 4 * (short / 1000).sqrt()).all()
    assert float((short - value).abs().max()) > 0.02


def test_nothing_is_earned_after_the_end() -> None:
    process, _ = read_env("FrozenLake-v1", 1.0)
    walks = sample_walks(process, uniform_policy(process), torch.zeros(200, dtype=torch.long), 300, generator(0))
    assert (walks.returns(1.0)[:, 0] <= 1).all()
    assert not walks.rewards[~walks.alive].any()
    assert (walks.alive[:, 1:] <= walks.alive[:, :-1]).all()
