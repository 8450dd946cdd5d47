"""Trust-region policy optimization: one natural-gradient step on each rollout, no further than a divergence allows.

    maximise E[r_t A_t]  subject to  E[KL(π_old(·|s_t) ‖ π_θ(·|s_t))] ≤ δ          r_t = π_θ(a_t|s_t) / π_old(a_t|s_t)
    θ ← θ + c^k √(2δ / sᵀ F s) s,   F s = ∇E[r A],   F v = ∇ ⟨∇E[KL], v⟩            (`descend.optim.trust_region`)
    V ← epochs of least squares on the generalized advantages' targets G_t = A_t + V(s_t)

The text only names it; this is the paper's method. F is the Hessian of the KL at π_old and so the Fisher matrix of the
policy; it is never formed. The KL that the line search accepts is measured on the rollout, so it is at most δ after
every step. Actor and critic share no parameter: the constraint is about the actor alone.

Systems: trpo
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move
from descend.losses.reinforcement import surrogate_loss, value_loss
from descend.metrics.policies import explained_variance
from descend.ops.actions import Categorical, Gaussian
from descend.ops.returns import gae, td_errors
from descend.optim.trust_region import DIVERGENCE, PRODUCT, REPORT, Query
from descend.ranges import Depth, Fraction, Share
from descend.seeds import generator
from descend.tasks.acting import Acting
from descend.tasks.playing import Play


@dataclass(frozen=True)
class Trusted:
    """The configuration of TRPO; δ and the search are the optimizer's."""

    gamma: Fraction = 0.99
    """Discount."""
    lam: Share = 0.95
    """λ of the advantage: 0 trusts the critic, 1 the rewards."""
    epochs: Depth = 10
    """The critic's passes over each rollout."""
    minibatches: Depth = 4
    """Minibatches per pass."""


class TRPO(Acting):
    """A batch is a rollout (copies, length, ..) that `look_back` has seen: one move of "policy", then epochs ×
    minibatches moves of "value". Every minibatch takes as many steps from each environment, so that slices of the
    environments are slices of the minibatches.

    `policy` maps observations to the distribution's parameters, `value` to V (.., 1). `query` is asked by the policy's
    optimizer; any other optimizer takes plain steps on the surrogate.
    """

    players = ("policy", "value")

    def __init__(
        self,
        towers: tuple[nn.Module, nn.Module],
        actions: type[Categorical] | type[Gaussian],
        numbers: Trusted,
        play: Play,
        seed: int,
    ):
        super().__init__(actions, play)
        self.policy, self.value = towers
        self.numbers, self.seed, self.query = numbers, seed, Query()

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("policy", lambda: self.loss(batch))
        each, length = torch.arange(len(batch["ids"]))[:, None], batch["target"].shape[1]
        draw, ids = int(batch["draw"][0]), batch["ids"].tolist()
        chances = [generator(self.seed, draw, i) for i in ids]
        for _ in range(self.numbers.epochs):
            order = torch.stack([torch.randperm(length, generator=chance) for chance in chances])
            for times in order.tensor_split(self.numbers.minibatches, dim=1):
                yield Move(
                    "value", lambda: self.regress(batch["observation"][each, times], batch["target"][each, times])
                )

    @torch.no_grad()
    def look_back(self, rollout: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the moves need of the policy that played: its distributions, A and G."""
        r, n = {name: x.to(self.where) for name, x in rollout.items()}, self.numbers
        value, beyond = (self.value(r[name]).squeeze(-1) for name in ("observation", "next"))
        delta = td_errors(r["reward"], value, beyond, r["terminated"], n.gamma)
        advantage = gae(delta, r["terminated"] | r["truncated"], n.gamma, n.lam)
        return {
            "observation": r["observation"],
            "action": r["action"],
            "old": self.policy(r["observation"]),
            "target": advantage + value,
            "advantage": (advantage - advantage.mean()) / (advantage.std() + 1e-8),
        }

    def loss(self, batch: Batch) -> Loss:
        """−E[r A]; or what the optimizer asks for: E[KL], or its slope along a direction."""
        pi, old = self.actions(self.policy(batch["observation"])), self.actions(batch["old"])
        if self.query.about in (DIVERGENCE, PRODUCT):
            kl = self.divergence(old, pi)
            params = [p for p in self.policy.parameters() if p.requires_grad]
            return Loss({"loss": self.query.product(kl, params) if self.query.about == PRODUCT else kl})
        action = batch["action"]
        loss = surrogate_loss(pi.log_prob(action), old.log_prob(action), batch["advantage"])
        if self.query.about != REPORT:
            return Loss({"loss": loss})
        return Loss({"loss": loss}, {"kl": self.divergence(old, pi).detach(), "entropy": pi.entropy().mean().detach()})

    @staticmethod
    def divergence(old: Categorical | Gaussian, new: Categorical | Gaussian) -> Tensor:
        """E[KL(π_old ‖ π_θ)] over the steps."""
        return old.divergence(new).mean()  # type: ignore[arg-type]

    def regress(self, observation: Tensor, target: Tensor) -> Loss:
        """The critic's least squares on some of the steps."""
        value = self.value(observation).squeeze(-1)
        told = {"explained_variance": explained_variance(value.detach(), target)}
        return Loss({"loss": value_loss(value, target)}, told)
