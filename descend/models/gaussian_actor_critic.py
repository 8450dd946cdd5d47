"""Actor and critic for actions that are vectors: the actor gives the mean of a Gaussian, its spread is a parameter.

    actor    π(a|s) = N(μ(s), diag σ²)       μ: a tanh tower; σ: a number for each part of an action
    critic   V(s)                            a tower of its own

log σ is the same in all states, starts at 0 (σ = 1) and is trained like a weight: the
policy itself decides when to explore less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.models.actor_critic import Tower, act_by
from descend.native.proximal import TowerLayers
from descend.ranges import Depth, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class GaussianActorCriticConfig:
    """`actions` is how many numbers an action has; the defaults fit Pendulum."""

    observations: Width = 3
    actions: Width = 1
    width: Width = 64
    depth: Depth = 2


class GaussianTower(nn.Module):
    """observation -> μ and log σ side by side (.., 2 actions); a view of a model's parts, which stay its own."""

    def __init__(self, mu: nn.Module, log_sigma: nn.Parameter):
        super().__init__()
        self.mu, self.log_sigma = mu, log_sigma

    def forward(self, observation: Tensor) -> Tensor:
        mu = self.mu(observation)
        return torch.cat([mu, self.log_sigma.expand_as(mu)], -1)


class GaussianActorCritic(Pretrained):
    """observation (.., o) -> μ and log σ side by side (.., 2 actions), and V (..)"""

    Config = GaussianActorCriticConfig

    def __init__(self, config: GaussianActorCriticConfig):
        super().__init__()
        c = self.config = config
        self.actor = Tower(c.observations, c.width, c.depth, c.actions, gain=0.01)
        self.critic = Tower(c.observations, c.width, c.depth, 1, gain=1.0)
        self.log_sigma = nn.Parameter(torch.zeros(c.actions))

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        mu = self.actor(observation)
        return torch.cat([mu, self.log_sigma.expand_as(mu)], -1), self.critic(observation).squeeze(-1)

    def layers(self) -> TowerLayers:
        """Its two networks, and log σ."""
        return TowerLayers(self.actor.layers(), self.critic.layers(), self.log_sigma)

    def actor_now(self) -> Callable[[Tensor], Tensor]:
        """observation -> μ and log σ, with the weights as they are, for the many small questions of a rollout."""
        mean, log_sigma = act_by(self.actor.layers()), self.log_sigma

        def ask(x: Tensor) -> Tensor:
            mu = mean(x)
            return torch.cat([mu, log_sigma.expand_as(mu)], -1)

        return ask

    def split(self) -> tuple[nn.Module, nn.Module]:
        """observation -> (μ, log σ), and observation -> V (.., 1): the two parts, for optimizers of their own."""
        return GaussianTower(self.actor, self.log_sigma), self.critic


SIZES: dict[str, GaussianActorCriticConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = GaussianActorCriticConfig(observations=3, actions=2, width=8, depth=2)


def TINY_INPUT() -> Tensor:
    """Two observations."""
    return torch.randn(2, TINY.observations, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("GaussianActorCritic")
