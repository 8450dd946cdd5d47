"""What a known process is worth: a policy evaluated, and the best policy found, by three ways that agree.

    evaluation          V^π = (I − γ P_π)⁻¹ R_π                     one linear solve, or
                        V ← R_π + γ P_π V                           sweeps; each shrinks the error by γ
    value iteration     V ← max_a [R + γ P_a V]
    policy iteration    evaluate π, then π(s) ← argmax_a Q^π(s, a), until nothing changes

γ is in [0, 1), as the book has it. γ = 1 is for episodes that end: then P_π is what goes on, its powers vanish, and the
same solve is right. A policy that might never end has no value there, and evaluating it is a mistake that names a state
where it goes round; improvement therefore starts from a policy that ends, changes an action only for a better one, and
so comes to policies that end. Among equally good actions the one that ends soonest is taken.

Systems: bellman-evaluation
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix, identity
from scipy.sparse.linalg import spsolve
from torch import Tensor

from descend.errors import Mistake
from descend.ops.decisions.bellman import (
    TIE,
    action_values,
    as_policy,
    best_actions,
    distance_to_end,
    end_soonest,
    greedy,
    require_policy,
    state_values,
)
from descend.ops.decisions.process import DecisionProcess

PRECISE = 1e-10  # error of V that iteration stops at, in parts of the largest reward
MOST = 100_000  # sweeps


class Solution(NamedTuple):
    """The best that can be done."""

    v: Tensor
    """V* (S)"""
    q: Tensor
    """Q* (S, A)"""
    policy: Tensor
    """The action of each state (S)."""
    rounds: int
    """Sweeps or improvements that it took."""


def require_ending(process: DecisionProcess, policy: Tensor) -> None:
    """With γ = 1, refuse a policy that might never end."""
    if process.gamma < 1:
        return
    for s in (distance_to_end(process, policy > 0) < 0).nonzero()[:1, 0].tolist():
        raise Mistake(
            f"gamma = 1, but from {process.labels.state(s)} this policy never ends, so it has no finite value;"
            " use gamma below 1, or a policy that ends"
        )


def evaluate_policy(process: DecisionProcess, policy: Tensor) -> Tensor:
    """V^π (S) of a policy (S, A), by the linear solve."""
    pi = require_policy(process, policy)
    require_ending(process, pi)
    weight = (pi.flatten()[process.pair] * process.onward).numpy()
    at = (process.pair // process.actions).numpy(), process.following.numpy()
    onward = csr_matrix((weight, at), shape=(process.states, process.states))
    system = (identity(process.states, format="csr") - process.gamma * onward).tocsc()
    reward = state_values(process.expected_reward, pi).numpy()
    return torch.from_numpy(np.atleast_1d(spsolve(system, reward)))


def sweep_policy(process: DecisionProcess, policy: Tensor, v: Tensor) -> Tensor:
    """One sweep of iterative evaluation: V ← Σ_a π [R + γ P V]. From V = 0, k sweeps give the value of k steps."""
    return state_values(action_values(process, v), policy)


def iterate_policy(process: DecisionProcess, policy: Tensor) -> tuple[Tensor, int]:
    """V^π by sweeps from 0, and how many it took."""
    pi = require_policy(process, policy)
    require_ending(process, pi)
    return _settle(process, lambda v: sweep_policy(process, pi, v))


def _settle(process: DecisionProcess, sweep: Callable[[Tensor], Tensor]) -> tuple[Tensor, int]:
    """Repeat V ← sweep(V) until the error is small: ‖V − V*‖ ≤ γ / (1 − γ) ‖change‖ for γ < 1.

    For γ = 1 no such bound is known; there the change must fall to rounding."""
    v = torch.zeros(process.states, dtype=torch.float64)
    scale = float(process.reward.abs().max().clamp_min(1e-300))
    factor = process.gamma / (1 - process.gamma) if process.gamma < 1 else 1e4
    for sweeps in range(1, MOST + 1):
        new = sweep(v)
        change, v = float((new - v).abs().max()), new
        if change * factor <= PRECISE * scale:
            return v, sweeps
    raise Mistake(
        f"the values still change by {change:.2g} after {MOST:,} sweeps (gamma {process.gamma});"
        " with gamma = 1 something earns or costs without end; use gamma below 1"
    )


def iterate_values(process: DecisionProcess) -> Solution:
    """V*, Q* and a best policy by value iteration."""
    v, sweeps = _settle(process, lambda v: action_values(process, v).amax(1))
    q = action_values(process, v)
    policy = _greedy_within(process, q)
    require_ending(process, as_policy(policy, process.actions))
    return Solution(v, q, policy, sweeps)


def _greedy_within(process: DecisionProcess, q: Tensor) -> Tensor:
    """The greedy policy, where Q is as precise as iteration makes it."""
    slack = 10 * PRECISE * float(process.reward.abs().max().clamp_min(1.0)) + TIE * float(q.abs().max())
    return end_soonest(process, q >= q.amax(1, keepdim=True) - slack)


def iterate_policies(process: DecisionProcess) -> Solution:
    """V*, Q* and a best policy by policy iteration."""
    every = torch.ones(process.states, process.actions, dtype=torch.bool)
    policy = end_soonest(process, every)
    for rounds in range(1, MOST + 1):
        v = evaluate_policy(process, as_policy(policy, process.actions))
        q = action_values(process, v)
        keep = best_actions(q).gather(1, policy[:, None])[:, 0]
        if bool(keep.all()):
            return Solution(v, q, greedy(process, q), rounds)
        policy = torch.where(keep, policy, q.argmax(1))
    raise Mistake(f"the policy still changes after {MOST:,} improvements; its values go up to {v.abs().max():.2g}")
