"""A policy that acts in an environment: by chance while it learns, with its most likely action when it is judged."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.ops.actions import Categorical, Gaussian
from descend.tasks.playing import Play, Playing


class Acting(Playing):
    """`policy` maps observations to the parameters of a distribution over actions; `actions` is that distribution."""

    policy: nn.Module

    def __init__(self, actions: type[Categorical] | type[Gaussian], play: Play):
        super().__init__()
        self.actions, self.play = actions, play

    def outputs(self, observation: Tensor) -> Tensor:
        """The parameters of π(·|s)."""
        found: Tensor = self.policy(observation)
        return found

    def act(self, observation: Tensor, generator: torch.Generator) -> Tensor:
        """a ~ π(·|s); what the stream plays with."""
        return self._pi(observation).sample(generator)

    def greedy(self, observation: Tensor) -> Tensor:
        """The most likely action."""
        return self._pi(observation).mode()

    def _pi(self, observation: Tensor) -> Categorical | Gaussian:
        return self.actions(self.outputs(observation.to(self.where)).cpu())

    @property
    def where(self) -> torch.device:
        """Where the policy lives."""
        return next(self.policy.parameters()).device
