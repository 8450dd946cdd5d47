"""Proximal policy optimization: several epochs on each rollout, kept close to the policy that played it.

    r_t = π_θ(a_t|s_t) / π_old(a_t|s_t)
    L(θ) = −E[min(r_t A_t, clip(r_t, 1−ε, 1+ε) A_t)] + c_v · ½ E[(V(s_t) − G_t)²] − c_e E[H(π_θ(·|s_t))]
    A_t: generalized advantage estimate with V before the first move;   G_t = A_t + V(s_t)

The books fix ε = 0.2 (VOM) and leave the estimator, the value loss, the entropy term and the epochs open; these are the
usual ones. A is standardised over the batch before it enters the surrogate. Left out: clipping of the value loss,
stopping by KL. The actions' distribution is an argument, so discrete and continuous actions share every line.

Systems: ppo
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Loss, Move
from descend.data.streams.arrays import generator
from descend.native.proximal import Networks
from descend.ops.actions import Categorical, Gaussian
from descend.ops.returns import gae, td_errors
from descend.ranges import Between, Depth, Fraction, NonNegative, Share
from descend.tasks.playing import Play, Playing
from descend.tasks.proximal import find_networks, judge_steps, judge_steps_compiled

LEARNED = ("observation", "action", "old", "target", "advantage")


@dataclass(frozen=True)
class Proximal:
    """The configuration of PPO."""

    gamma: Fraction = 0.99
    """Discount."""
    lam: Share = 0.95
    """λ of the advantage: 0 trusts the critic, 1 the rewards."""
    eps: Between = 0.2
    """Clip range ε of the probability ratio."""
    value: NonNegative = 0.5
    """Weight of the critic's loss."""
    entropy: NonNegative = 0.0
    """Weight of the entropy bonus."""
    epochs: Depth = 10
    """Passes over each rollout."""
    minibatches: Depth = 4
    """Minibatches per pass."""


class PPO(Playing):
    """A batch is a rollout (copies, length, ..) that `look_back` has seen; epochs × minibatches moves of "policy".

    `policy` maps observations to the distribution's parameters and V; `actions` is that distribution. A minibatch takes
    the same number of steps from every environment, in an order of that environment alone. So the minibatches of a
    slice of the environments are the slices of the minibatches, and accumulation or processes change nothing.
    """

    players = ("policy",)

    def __init__(
        self,
        policy: Any,
        actions: type[Categorical] | type[Gaussian],
        numbers: Proximal,
        play: Play,
        seed: int,
    ):
        super().__init__()
        self.policy, self.actions, self.numbers, self.play, self.seed = policy, actions, numbers, play, seed
        self.ask: Callable[[Tensor], Tensor] | None = None  # the actor that plays the next rollout

    def moves(self, batch: Batch) -> Iterator[Move]:
        self.ask = None
        copies, length = batch["advantage"].shape
        first = torch.arange(copies)[:, None] * length
        flat = {name: batch[name].flatten(0, 1) for name in LEARNED}
        draw, ids = int(batch["draw"][0]), batch["ids"].tolist()
        chances = [generator(self.seed, draw, i) for i in ids]  # of the batch's number: nothing to save
        networks = find_networks(self.policy, -(-copies * length // self.numbers.minibatches))
        for _ in range(self.numbers.epochs):
            order = torch.stack([torch.randperm(length, generator=chance) for chance in chances])
            places = [(first + times).flatten() for times in order.tensor_split(self.numbers.minibatches, dim=1)]
            rows, sizes = torch.cat(places), [len(place) for place in places]
            # Every tensor is gathered once for all minibatches of the epoch.
            parts = {name: x[rows].split(sizes) for name, x in flat.items()}
            for i in range(len(sizes)):
                some = {name: part[i].unflatten(0, (copies, -1)) for name, part in parts.items()}
                yield Move("policy", lambda: self.loss(some, networks))

    @torch.no_grad()
    def look_back(self, rollout: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the moves need of the policy that played: log π_old, A and G, before any of it is learned from."""
        where, n = next(self.policy.parameters()).device, self.numbers
        r = {name: x.to(where) for name, x in rollout.items()}
        out, value = self.policy(r["observation"])
        next_value = self.policy(r["next"])[1]  # of the last state before a reset, not of the state after it
        delta = td_errors(r["reward"], value, next_value, r["terminated"], n.gamma)
        advantage = gae(delta, r["terminated"] | r["truncated"], n.gamma, n.lam)
        return {
            "observation": r["observation"],
            "action": r["action"],
            "old": self.actions(out).log_prob(r["action"]),
            "target": advantage + value,
            "advantage": (advantage - advantage.mean()) / (advantage.std() + 1e-8),
        }

    def loss(self, steps: dict[str, Tensor], networks: Networks | None = None) -> Loss:
        """L(θ) on some of the steps; `networks` are the policy's where there is compiled code for them."""
        n = self.numbers
        found = (
            judge_steps(self.policy, self.actions, steps, n.eps)
            if networks is None
            else judge_steps_compiled(networks, steps, n.eps)
        )
        terms = {"policy": found.policy, "value": n.value * found.value, "entropy": -n.entropy * found.entropy}
        return Loss(terms, found.told)

    def act(self, observation: Tensor, generator: torch.Generator) -> Tensor:
        """a ~ π(·|s); what the stream plays with."""
        if self.ask is None:
            self.ask = self.policy.actor_now()
        return self.actions(self.ask(observation).cpu()).sample(generator)

    def greedy(self, observation: Tensor) -> Tensor:
        """The most likely action."""
        return self.actions(self.policy(observation.to(next(self.policy.parameters()).device))[0].cpu()).mode()
