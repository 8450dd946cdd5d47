"""Walks through a finite process, many at once: s' and r are drawn from the list of outcomes by uniform numbers.

    i = the first outcome of (s, a) whose running sum of probabilities exceeds u,      u ~ U(0, 1)

The running sums of all pairs stand in one sorted list (pair k covers k..k+1), so one binary search serves all walks.
The random numbers are the caller's, so that a resumed run walks the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.ops.decisions.process import DecisionProcess
from descend.ops.returns import discounted_returns


class Step(NamedTuple):
    """What happened to each walk (b)."""

    following: Tensor
    reward: Tensor
    ended: Tensor


def draw_states(process: DecisionProcess, u: Tensor) -> Tensor:
    """Where episodes begin, by u in 0..1 (b)."""
    sums = process.start.cumsum(0)
    last = process.start.nonzero()[-1, 0]
    return torch.searchsorted(sums, u.double().contiguous(), right=True).clamp_max(last)


def draw_actions(policy: Tensor, state: Tensor, u: Tensor) -> Tensor:
    """a ~ π(·|s), by u in 0..1 (b)."""
    found = (policy[state].cumsum(1) <= u.double()[:, None]).sum(1)
    return found.clamp_max(policy.shape[1] - 1)


def take_step(process: DecisionProcess, state: Tensor, action: Tensor, u: Tensor) -> Step:
    """One step of every walk, by u in 0..1 (b)."""
    pair = state * process.actions + action
    found = torch.searchsorted(process.cumulative, pair + u.double(), right=True)
    i = torch.minimum(torch.maximum(found, process.bounds[pair]), process.bounds[pair + 1] - 1)
    return Step(process.following[i], process.reward[i], process.ends[i])


class Walks(NamedTuple):
    """Episodes side by side (b, t); after the end of one its rewards are 0 and `alive` is false."""

    states: Tensor
    actions: Tensor
    rewards: Tensor
    alive: Tensor
    """Whether this step was taken."""
    ended: Tensor
    """Whether the episode came to its end (b); else it was cut off."""

    def returns(self, gamma: float) -> Tensor:
        """G_t = r_t + γ G_{t+1} (b, t); what would follow a cut is left out."""
        return discounted_returns(self.rewards, torch.zeros_like(self.alive), gamma)


def sample_walks(
    process: DecisionProcess, policy: Tensor, begin: Tensor, longest: int, random: torch.Generator
) -> Walks:
    """Episodes of a policy from the states `begin` (b), each of at most this many steps."""
    state, alive = begin, torch.ones(len(begin), dtype=torch.bool)
    told: list[tuple[Tensor, ...]] = []
    for _ in range(longest):
        u = torch.rand(2, len(begin), generator=random, dtype=torch.float64)
        action = draw_actions(policy, state, u[0])
        step = take_step(process, state, action, u[1])
        told.append((state, action, step.reward.masked_fill(~alive, 0.0), alive))
        alive = alive & ~step.ended
        state = torch.where(alive, step.following, state)
        if not bool(alive.any()):
            break
    states, actions, rewards, taken = (torch.stack(column, dim=1) for column in zip(*told, strict=True))
    return Walks(states, actions, rewards, taken, ~alive)
