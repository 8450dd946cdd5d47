"""Advantage actor-critic (A2C): short stretches of many environments, and one step on each.

    L(θ) = −E[A_t log π_θ(a_t|s_t)] + c_v · ½ E[(V(s_t) − G_t)²] − c_e E[H(π_θ(·|s_t))]
    A = Q − V:   one step, A_t = δ_t = r_t + γ V(s_{t+1}) − V(s_t);   n steps, A_t = Σ_{k<n} γ^k δ_{t+k}
    G_t = A_t + V(s_t)

E_π[A(s, ·)] = 0, and where V is the true value δ_t is an unbiased estimate of A(s_t, a_t), as every n-step sum is; a
small n trusts the critic, a large one the rewards. S940 9.3 names no estimator. A terminal state has V = 0; after a
time limit V of the last state seen stands for what would have come. A stretch may be used once: the next is played by
the policy that has learned from it.

Systems: actor-critic
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move
from descend.losses.reinforcement import policy_gradient_loss, value_loss
from descend.metrics.policies import explained_variance
from descend.ops.actions import Categorical, Gaussian
from descend.ops.returns import n_step_advantages, td_errors
from descend.ranges import Depth, Fraction, NonNegative
from descend.tasks.acting import Acting
from descend.tasks.playing import Play


@dataclass(frozen=True)
class Advantage:
    """The configuration of actor-critic."""

    gamma: Fraction = 0.99
    """Discount."""
    n: Depth = 5
    """Rewards that are seen before the critic is believed; 1: the one-step advantage."""
    value: NonNegative = 0.5
    """Weight of the critic's loss."""
    entropy: NonNegative = 0.0
    """Weight of the entropy bonus."""


class AdvantageActorCritic(Acting):
    """A batch is a stretch (copies, length, ..) that `look_back` has seen; one move of "policy", which gives the
    distribution's parameters and V."""

    players = ("policy",)

    def __init__(self, policy: nn.Module, actions: type[Categorical] | type[Gaussian], numbers: Advantage, play: Play):
        super().__init__(actions, play)
        self.policy, self.numbers = policy, numbers

    def outputs(self, observation: Tensor) -> Tensor:
        found: Tensor = self.policy(observation)[0]
        return found

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("policy", lambda: self.loss(batch))

    @torch.no_grad()
    def look_back(self, rollout: dict[str, Tensor]) -> dict[str, Tensor]:
        """A and G, by the critic as it was when the stretch was played."""
        r, n = {name: x.to(self.where) for name, x in rollout.items()}, self.numbers
        value, beyond = self.policy(r["observation"])[1], self.policy(r["next"])[1]
        delta = td_errors(r["reward"], value, beyond, r["terminated"], n.gamma)
        advantage = n_step_advantages(delta, r["terminated"] | r["truncated"], n.gamma, n.n)
        kept = {name: r[name] for name in ("observation", "action")}
        return {**kept, "advantage": advantage, "target": advantage + value}

    def loss(self, batch: Batch) -> Loss:
        out, value = self.policy(batch["observation"])
        pi, n = self.actions(out), self.numbers
        entropy = pi.entropy().mean()
        terms = {
            "policy": policy_gradient_loss(pi.log_prob(batch["action"]), batch["advantage"]),
            "value": n.value * value_loss(value, batch["target"]),
            "entropy": -n.entropy * entropy,
        }
        with torch.no_grad():
            told = {"entropy": entropy, "explained_variance": explained_variance(value, batch["target"])}
        return Loss(terms, told)
