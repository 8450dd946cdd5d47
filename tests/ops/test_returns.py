"""Returns and advantages against sums written out, one term after another."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.ops.returns import discounted_returns, gae, n_step_advantages, td_errors
from tests.close import close

GAMMA, LAM = 0.9, 0.8


def rollout(b: int = 3, t: int = 12) -> dict[str, Tensor]:
    """Random rewards and values with a few endings of both kinds."""
    g = torch.Generator().manual_seed(0)
    reward, value, next_value = torch.randn(3, b, t, generator=g, dtype=torch.float64)
    terminated, truncated = torch.rand(2, b, t, generator=g) < 0.15
    return {
        "reward": reward,
        "value": value,
        "next": next_value,
        "terminated": terminated,
        "ended": terminated | truncated,
    }


def summed(x: Tensor, ended: Tensor, factor: float) -> Tensor:
    """y_t = Σ_k factor^k x_{t+k}, up to and with the first ended step: the plain double loop."""
    y = torch.zeros_like(x)
    for row in range(x.shape[0]):
        for t in range(x.shape[1]):
            for k in range(x.shape[1] - t):
                y[row, t] += factor**k * x[row, t + k]
                if ended[row, t + k]:
                    break
    return y


def test_returns_are_the_sum_of_what_follows() -> None:
    r = rollout()
    close(discounted_returns(r["reward"], r["ended"], GAMMA), summed(r["reward"], r["ended"], GAMMA))


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "advantages")
def test_gae_is_the_sum_of_errors() -> None:
    r = rollout()
    delta = torch.empty_like(r["reward"])
    for index in torch.cartesian_prod(torch.arange(3), torch.arange(12)).tolist():
        i = tuple(index)
        follows = 0.0 if r["terminated"][i] else r["next"][i]
        delta[i] = r["reward"][i] + GAMMA * follows - r["value"][i]
    close(td_errors(r["reward"], r["value"], r["next"], r["terminated"], GAMMA), delta)
    close(gae(delta, r["ended"], GAMMA, LAM), summed(delta, r["ended"], GAMMA * LAM))


def test_lambda_one_is_the_return_minus_the_value() -> None:
    """In an episode that terminates, values telescope away: A_t = G_t − V(s_t). λ = 0 leaves δ."""
    g = torch.Generator().manual_seed(1)
    reward, value = torch.randn(2, 1, 6, generator=g, dtype=torch.float64)
    next_value = torch.cat([value[:, 1:], torch.full((1, 1), 7.0, dtype=torch.float64)], 1)
    over = torch.tensor([[False] * 5 + [True]])
    delta = td_errors(reward, value, next_value, over, GAMMA)
    close(gae(delta, over, GAMMA, 1.0), discounted_returns(reward, over, GAMMA) - value)
    close(gae(delta, over, GAMMA, 0.0), delta)


def test_a_time_limit_is_not_an_end() -> None:
    """r = 1 in each step, V = 10 = 1/(1 − γ): cut off, nothing is missing (A = 0); terminated, the 10 are gone."""
    reward, value = torch.ones(2, 1), torch.full((2, 1), 10.0)
    terminated = torch.tensor([[False], [True]])
    delta = td_errors(reward, value, value, terminated, 0.9)
    close(gae(delta, torch.tensor([[True], [True]]), 0.9, 0.95), [[0.0], [-9.0]])


def test_nothing_leaks_from_the_next_episode() -> None:
    r = rollout(1, 8)
    ended = torch.zeros(1, 8, dtype=torch.bool)
    ended[0, 3] = True
    before = gae(r["reward"], ended, GAMMA, LAM)
    changed = r["reward"].clone()
    changed[0, 4:] += 100
    assert torch.equal(gae(changed, ended, GAMMA, LAM)[0, :4], before[0, :4])


@pytest.mark.system("actor-critic", "n-step", "one-step")
@pytest.mark.parametrize("n", [1, 2, 5, 12, 50])
def test_n_steps_are_rewards_and_then_the_critic(n: int) -> None:
    """Σ_{k<m} γ^k r_{t+k} + γ^m V(after) − V(s_t), m = n or up to an end, of the row, too; no V where it ended."""
    r = rollout()
    # Inside an episode the next state's value is the value of the next step.
    beyond = torch.where(r["ended"][:, :-1], r["next"][:, :-1], r["value"][:, 1:])
    following = torch.cat([beyond, r["next"][:, -1:]], 1)
    delta = td_errors(r["reward"], r["value"], following, r["terminated"], GAMMA)
    expected = torch.zeros_like(delta)
    for row in range(3):
        for t in range(12):
            total, m = 0.0, 0
            while True:
                at = t + m
                total += GAMMA**m * r["reward"][row, at].item()
                m += 1
                if r["ended"][row, at] or m == n or at == 11:
                    break
            after = 0.0 if r["terminated"][row, at] else following[row, at].item()
            expected[row, t] = total + GAMMA**m * after - r["value"][row, t]
    close(n_step_advantages(delta, r["ended"], GAMMA, n), expected)
    if n == 50:
        close(n_step_advantages(delta, r["ended"], GAMMA, n), gae(delta, r["ended"], GAMMA, 1.0))
    if n == 1:
        close(n_step_advantages(delta, r["ended"], GAMMA, n), delta)
