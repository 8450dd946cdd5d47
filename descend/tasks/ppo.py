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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.data.streams.arrays import generator
from descend.losses.reinforcement import ppo_loss, value_loss
from descend.metrics.policies import approximate_kl, clip_fraction, explained_variance
from descend.ops.actions import Categorical, Gaussian
from descend.ops.returns import gae, td_errors
from descend.ranges import Between, Depth, NonNegative, Share

LEARNED = ("observation", "action", "old", "target", "advantage")

Play = Callable[[Callable[[Tensor], Tensor], Sequence[int]], Tensor]


@dataclass(frozen=True)
class Proximal:
    """The configuration of PPO."""

    gamma: Share = 0.99
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


class PPO(Task):
    """A batch is a rollout (copies, length, ..) that `look_back` has seen; epochs × minibatches moves of "policy".

    `policy` maps observations to the distribution's parameters and V; `actions` is that distribution. A minibatch takes
    the same number of steps from every environment, in an order of that environment alone. So the minibatches of a
    slice of the environments are the slices of the minibatches, and accumulation or processes change nothing.
    """

    players = ("policy",)

    def __init__(
        self,
        policy: nn.Module,
        actions: type[Categorical] | type[Gaussian],
        numbers: Proximal,
        play: Play,
        seed: int,
    ):
        super().__init__()
        self.policy, self.actions, self.numbers, self.play, self.seed = policy, actions, numbers, play, seed

    def moves(self, batch: Batch) -> Iterator[Move]:
        length = batch["advantage"].shape[1]
        each = torch.arange(len(batch["ids"]))[:, None]
        draw, ids = int(batch["draw"][0]), batch["ids"].tolist()
        chances = [generator(self.seed, draw, i) for i in ids]  # of the batch's number: nothing to save
        for _ in range(self.numbers.epochs):
            order = torch.stack([torch.randperm(length, generator=chance) for chance in chances])
            for times in order.tensor_split(self.numbers.minibatches, dim=1):
                yield Move("policy", lambda: self.loss({name: batch[name][each, times] for name in LEARNED}))

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

    def loss(self, steps: dict[str, Tensor]) -> Loss:
        """L(θ) on some of the steps."""
        out, value = self.policy(steps["observation"])
        pi, target, n = self.actions(out), steps["target"], self.numbers
        log_prob, entropy = pi.log_prob(steps["action"]), pi.entropy().mean()
        surrogate = ppo_loss(log_prob, steps["old"], steps["advantage"], n.eps)
        terms = {"policy": surrogate, "value": n.value * value_loss(value, target), "entropy": -n.entropy * entropy}
        with torch.no_grad():
            change = log_prob - steps["old"]
            told = {
                "entropy": entropy.detach(),
                "approximate_kl": approximate_kl(change),
                "clip_fraction": clip_fraction(change.exp(), n.eps),
                "explained_variance": explained_variance(value, target),
            }
        return Loss(terms, told)

    def act(self, observation: Tensor, generator: torch.Generator) -> Tensor:
        """a ~ π(·|s); what the stream plays with."""
        return self._pi(observation).sample(generator)

    def greedy(self, observation: Tensor) -> Tensor:
        """The most likely action."""
        return self._pi(observation).mode()

    def _pi(self, observation: Tensor) -> Categorical | Gaussian:
        return self.actions(self.policy(observation.to(next(self.policy.parameters()).device))[0].cpu())

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        """The return of each episode whose seed the batch names, played greedily."""
        return {"return": self.play(self.greedy, batch["seed"].tolist())}
