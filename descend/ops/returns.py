"""Returns and advantages: what the rewards after a step are worth, seen from that step.

    G_t = r_t + γ G_{t+1}                                       discounted return
    δ_t = r_t + γ V(s_{t+1}) − V(s_t)                           temporal-difference error
    A_t = Σ_k (γλ)^k δ_{t+k} = δ_t + γλ A_{t+1}                 generalized advantage estimate (GAE)
    A_t = Σ_{k<n} γ^k δ_{t+k} = Σ_{k<n} γ^k r_{t+k} + γⁿ V(s_{t+n}) − V(s_t)      n-step advantage

λ = 0 and n = 1 leave the one-step error δ_t, λ = 1 and a large n the return minus V(s_t). All tensors are (b, t): a row
for each environment, time along the last axis. r_t is the reward that follows the action at t (S940 9.2; 9.1 calls the
same reward R_{t+1}).

Two ways to stop are kept apart. `terminated`: the world ended, nothing follows, so V(s_{t+1}) counts as 0. `ended`:
terminated or cut off by a time limit; the sums stop here because the next step belongs to another episode, but after a
cut-off V of the last state seen still stands for the rewards that would have come.

The estimators are not the books': S940 9.3 asks for an advantage and names none; these are the usual ones.
"""

from __future__ import annotations

import torch
from torch import Tensor


def discounted_returns(reward: Tensor, ended: Tensor, gamma: float) -> Tensor:
    """G_t = r_t + γ G_{t+1} inside an episode; the row's end is not bootstrapped."""
    total = torch.zeros_like(reward[..., 0])
    factor = torch.full_like(reward, gamma).masked_fill(ended, 0.0)
    returns = []
    for r, f in zip(reward.unbind(-1)[::-1], factor.unbind(-1)[::-1], strict=True):  # only the rows run side by side
        total = r + f * total
        returns.append(total)
    return torch.stack(returns[::-1], -1) if returns else reward


def td_errors(reward: Tensor, value: Tensor, next_value: Tensor, terminated: Tensor, gamma: float) -> Tensor:
    """δ_t = r_t + γ V(s_{t+1}) − V(s_t), where a terminal s_{t+1} has V = 0."""
    return reward + gamma * next_value.masked_fill(terminated, 0.0) - value


def gae(delta: Tensor, ended: Tensor, gamma: float, lam: float) -> Tensor:
    """A_t = δ_t + γλ A_{t+1}: the same recursion as the return, over δ and with γλ."""
    return discounted_returns(delta, ended, gamma * lam)


def n_step_advantages(delta: Tensor, ended: Tensor, gamma: float, n: int) -> Tensor:
    """Σ_{k<n} γ^k δ_{t+k} inside an episode; near the row's end as many as there are, then V stands for the rest."""
    total, going = torch.zeros_like(delta), torch.ones_like(ended)
    for k in range(min(n, delta.shape[-1])):
        here = slice(0, delta.shape[-1] - k)
        total[..., here] += gamma**k * delta[..., k:].masked_fill(~going[..., here], 0.0)
        going[..., here] &= ~ended[..., k:]
    return total
