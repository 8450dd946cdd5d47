"""Proximal policy optimization: several epochs on each rollout, kept close to the policy that played it.

    r_t = π_θ(a_t|s_t) / π_old(a_t|s_t)
    L(θ) = −E[min(r_t A_t, clip(r_t, 1−ε, 1+ε) A_t)] + c_v · ½ E[(V(s_t) − G_t)²] − c_e E[H(π_θ(·|s_t))]
    A_t: generalized advantage estimate with V before the first move;   G_t = A_t + V(s_t)

The books fix ε = 0.2 (VOM) and leave the estimator, the value loss, the entropy term and the epochs open; these are the
usual ones. A is standardised over the batch before it enters the surrogate. Left out: clipping of the value loss, stopping by
KL. The actions' distribution is an argument, so discrete and continuous actions share every line.

Systems: ppo
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.data.arrays import generator
from descend.losses.reinforcement import ppo_loss, value_loss
from descend.ops.actions import Categorical, Gaussian
from descend.ops.returns import gae, td_errors

Play = Callable[[Callable[[Tensor], Tensor], Sequence[int]], Tensor]


@dataclass(frozen=True)
class Proximal:
    """The numbers of PPO."""

    gamma: float = 0.99
    """Discount."""
    lam: float = 0.95
    """λ of the advantage: 0 trusts the critic, 1 the rewards."""
    eps: float = 0.2
    """How far the ratio may move."""
    value: float = 0.5
    """Weight of the critic's loss."""
    entropy: float = 0.0
    """Weight of the entropy bonus."""
    epochs: int = 10
    """Passes over each rollout."""
    minibatches: int = 4
    """Moves in a pass."""


class PPO(nn.Module):
    """A batch is a rollout (copies, length, ..); epochs × minibatches moves of "policy".

    `policy` maps observations to the distribution's parameters and V; `actions` is that distribution.
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

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        steps = self.look_back(batch)
        count = len(steps["advantage"])
        order = generator(self.seed, int(batch["draw"][0]))  # of the batch's number: nothing to save
        for _ in range(self.numbers.epochs):
            for rows in torch.randperm(count, generator=order).chunk(self.numbers.minibatches):
                yield "policy", lambda: self.loss({name: x[rows] for name, x in steps.items()})

    @torch.no_grad()
    def look_back(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the moves need of the policy that played: log π_old, A and G; rows and time made one axis."""
        n = self.numbers
        out, value = self.policy(batch["observation"])
        next_value = self.policy(batch["next"])[1]  # of the last state before a reset, not of the state after it
        delta = td_errors(batch["reward"], value, next_value, batch["terminated"], n.gamma)
        advantage = gae(delta, batch["terminated"] | batch["truncated"], n.gamma, n.lam)
        steps = {
            "observation": batch["observation"],
            "action": batch["action"],
            "old": self.actions(out).log_prob(batch["action"]),
            "target": advantage + value,
            "advantage": (advantage - advantage.mean()) / (advantage.std() + 1e-8),
        }
        return {name: x.flatten(0, 1) for name, x in steps.items()}

    def loss(self, steps: dict[str, Tensor]) -> Tensor:
        """L(θ) on some of the steps."""
        out, value = self.policy(steps["observation"])
        pi = self.actions(out)
        surrogate = ppo_loss(pi.log_prob(steps["action"]), steps["old"], steps["advantage"], self.numbers.eps)
        critic = value_loss(value, steps["target"])
        return surrogate + self.numbers.value * critic - self.numbers.entropy * pi.entropy().mean()

    def act(self, observation: Tensor, generator: torch.Generator) -> Tensor:
        """a ~ π(·|s); what the stream plays with."""
        return self._pi(observation).sample(generator)

    def greedy(self, observation: Tensor) -> Tensor:
        """The most likely action."""
        return self._pi(observation).mode()

    def _pi(self, observation: Tensor) -> Categorical | Gaussian:
        return self.actions(self.policy(observation.to(next(self.policy.parameters()).device))[0].cpu())

    @torch.no_grad()
    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The return of each episode whose seed the batch names, played greedily."""
        return {"return": self.play(self.greedy, batch["seed"].tolist())}
