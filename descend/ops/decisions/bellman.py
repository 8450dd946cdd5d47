"""Bellman's equations of a finite process, and which states lead to which.

    Q(s, a) = Σ_s' P(s'|s, a) [R + γ V(s')]            V(s') counts as 0 where the episode ends
    V^π(s)  = Σ_a π(a|s) Q^π(s, a)
    V*(s)   = max_a Q*(s, a)

A policy is a table π(a|s) (S, A) whose rows sum to 1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.decisions.process import SLACK, DecisionProcess

TIE = 1e-9  # actions whose values differ by less, in parts of the largest value, are equally good


def action_values(process: DecisionProcess, v: Tensor) -> Tensor:
    """V (S) -> Q (S, A): one step, then V."""
    return process.expected_reward + process.gamma * process.add_up(process.onward * v[process.following])


def state_values(q: Tensor, policy: Tensor) -> Tensor:
    """V(s) = Σ_a π(a|s) Q(s, a)."""
    return (policy * q).sum(-1)


def as_policy(action: Tensor, actions: int) -> Tensor:
    """One action for each state (S) -> the table of the policy that takes it (S, A)."""
    return torch.nn.functional.one_hot(action, actions).double()


def uniform_policy(process: DecisionProcess) -> Tensor:
    """Every action with the same probability."""
    return torch.full((process.states, process.actions), 1 / process.actions, dtype=torch.float64)


def require_policy(process: DecisionProcess, policy: Tensor) -> Tensor:
    """A policy as float64, or a mistake that names the first state whose row is none."""
    pi = torch.as_tensor(policy, dtype=torch.float64)
    if pi.shape != (process.states, process.actions):
        raise Mistake(f"a policy is a table ({process.states}, {process.actions}), not {tuple(pi.shape)}")
    wrong = ~((pi >= 0).all(1) & ((pi.sum(1) - 1).abs() <= SLACK))
    for s in wrong.nonzero()[:1, 0].tolist():
        raise Mistake(f"{process.labels.state(s)}: the policy gives {pi[s].tolist()}, which is no distribution")
    return pi


def reachable(process: DecisionProcess) -> Tensor:
    """Which states an episode can come to (S); a state that is only seen at its end does not count."""
    allowed = process.onward > 0
    source, target = process.pair[allowed] // process.actions, process.following[allowed]
    found = process.start > 0
    while True:
        more = found.index_put((target[found[source]],), torch.tensor(True))
        if torch.equal(more, found):
            return found
        found = more


def distance_to_end(process: DecisionProcess, allowed: Tensor) -> Tensor:
    """The fewest steps in which an episode can end from each state, by the allowed actions (S, A); −1: it cannot."""
    distance = torch.full((process.states,), -1)
    state, usable = process.pair // process.actions, allowed.flatten()[process.pair] & (process.probability > 0)
    for steps in range(1, process.states + 1):
        near = process.ends if steps == 1 else distance[process.following] == steps - 1
        fresh = state[usable & near & (distance[state] < 0)]
        if not len(fresh):
            break
        distance[fresh] = steps
    return distance


def end_soonest(process: DecisionProcess, allowed: Tensor) -> Tensor:
    """Of the allowed actions (S, A), one for each state (S) that may bring the end nearer; else the first.

    From a state that can end, the policy made of these ends with probability 1 as long as all states that it leads to
    can: every state has a chance of getting one step nearer."""
    distance = distance_to_end(process, allowed)
    state = process.pair // process.actions
    left = torch.where(process.ends, 0, distance[process.following])
    nearer = (process.probability > 0) & (left >= 0) & (left == distance[state] - 1)
    good = process.add_up(nearer.double()) > 0
    choice = torch.where(distance[:, None] > 0, allowed & good, allowed)
    return choice.int().argmax(1)


def best_actions(q: Tensor) -> Tensor:
    """Which actions are as good as the best of their state (S, A), up to rounding."""
    return q >= q.amax(1, keepdim=True) - TIE * q.abs().max().clamp_min(1.0)


def greedy(process: DecisionProcess, q: Tensor) -> Tensor:
    """argmax_a Q(s, a) (S). Of equally good actions one that ends soonest: with γ = 1 the others may never end."""
    return end_soonest(process, best_actions(q))
