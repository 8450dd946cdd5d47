"""REINFORCE: play whole episodes, and make what was followed by a high return more likely.

    ∇J = E[Σ_t w_t ∇log π(a_t|s_t) (G_t − b(s_t))]        G_t = r_t + γ G_{t+1}
    w_t = γ^t      the gradient of J = E[Σ_t γ^t r_t]: unbiased
    w_t = 1        as printed; late steps count in full
    b = 0, the mean return of the other episodes, or V(s_t), a critic that learns E[G_t] by ½ E[(V − G)²]

Erratum (S940 9.3): the printed formula has no γ^t. It is then the gradient of no function of θ, though it is what most
code does; with γ = 0.99 and 500 steps γ^t would hide almost everything that is learned late. Both are here.
A baseline changes the mean not at all (the other episodes do not depend on this one's actions) and the variance much.

A terminal state ends the sum. A time limit does not end the world: with a learned baseline V of the last state stands
for the rewards that would have come; without one nothing can, and the sum stops there, too.

Systems: reinforce, policy-gradient-baseline
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move
from descend.losses.reinforcement import episode_loss
from descend.metrics.policies import explained_variance
from descend.ops.actions import Categorical, Gaussian
from descend.ops.returns import discounted_returns
from descend.ranges import Fraction, NonNegative
from descend.tasks.acting import Acting
from descend.tasks.playing import Play


@dataclass(frozen=True)
class MonteCarlo:
    """The configuration of REINFORCE."""

    gamma: Fraction = 0.99
    """Discount."""
    weight: Literal["discounted", "even"] = "discounted"
    """w_t: γ^t, or 1."""
    baseline: Literal["none", "mean", "learned"] = "learned"
    """b: 0, the mean return of the other episodes of a batch, or the critic's V(s)."""
    value: NonNegative = 0.5
    """Weight of the critic's loss."""
    entropy: NonNegative = 0.0
    """Weight of the entropy bonus."""


class Reinforce(Acting):
    """A batch is whole episodes (b, longest, ..) that `look_back` has seen, `real` (b, longest) until they ended.

    `policy` maps observations to the distribution's parameters and V. The critic is trained whatever the baseline is,
    so that a run can be asked how much of the return it could have known.
    """

    players = ("policy",)

    def __init__(self, policy: nn.Module, actions: type[Categorical] | type[Gaussian], numbers: MonteCarlo, play: Play):
        super().__init__(actions, play)
        self.policy, self.numbers = policy, numbers

    def outputs(self, observation: Tensor) -> Tensor:
        found: Tensor = self.policy(observation)[0]
        return found

    def moves(self, batch: Batch) -> Iterator[Move]:
        steps = batch["real"].sum()
        yield Move("policy", lambda: self.loss(batch), {"value": steps, "entropy": steps})

    @torch.no_grad()
    def look_back(self, episodes: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the move needs of the policy that played, and of all episodes: G − b, and w."""
        e, n = {name: x.to(self.where) for name, x in episodes.items()}, self.numbers
        real, reward, over = e["real"], e["reward"], e["terminated"] | e["truncated"]
        value = self.policy(e["observation"])[1]
        if n.baseline == "learned":
            beyond = self.policy(e["next"])[1]
            reward = reward + n.gamma * beyond.masked_fill(~e["truncated"], 0.0)
        target = discounted_returns(reward.masked_fill(~real, 0.0), over, n.gamma)
        baselines = {"none": torch.zeros_like, "mean": lambda g: mean_of_others(g, real), "learned": lambda g: value}
        advantage = target - baselines[n.baseline](target)
        weight = real.to(target.dtype)
        if n.weight == "discounted":
            weight = weight * n.gamma ** torch.arange(real.shape[1], device=real.device, dtype=target.dtype)
        kept = {name: e[name] for name in ("observation", "action", "real")}
        return {**kept, "target": target, "advantage": advantage, "weight": weight}

    def loss(self, batch: Batch) -> Loss:
        """A mean over episodes of the policy's part; of the others a mean over steps."""
        out, value = self.policy(batch["observation"])
        pi, real, n = self.actions(out), batch["real"], self.numbers
        entropy, away = pi.entropy(), value - batch["target"]
        terms = {
            "policy": episode_loss(pi.log_prob(batch["action"]), batch["weight"], batch["advantage"]),
            "value": n.value * 0.5 * away[real].square().mean(),
            "entropy": -n.entropy * entropy[real].mean(),
        }
        with torch.no_grad():
            length = real.sum(-1).to(value.dtype)
            told = {
                "entropy": ((entropy * real).sum(-1) / length).mean(),
                "episode_length": length.mean(),
                "explained_variance": explained_variance(value[real], batch["target"][real]),
            }
            if "played" in batch:
                told["environment_steps"] = batch["played"].to(value.dtype).mean()
        return Loss(terms, told)


def mean_of_others(returns: Tensor, real: Tensor) -> Tensor:
    """For each episode the mean of G over the steps of all others, one number that its own actions have no part in."""
    total, steps = returns.masked_fill(~real, 0.0).sum(-1), real.sum(-1)
    others = (total.sum() - total) / (steps.sum() - steps).clamp_min(1)
    return others[:, None].expand_as(returns)
