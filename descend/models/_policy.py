"""What policies have in common: chunks in the units that a network learns well, and a plan from what is seen.

    actions      a_1 .. a_T: joint increments, and the gripper
    learned      (Σ_{j≤i} a_j − μ_i) / σ_i,  i = 1..T       where the arm will be after i steps, from where it is now

Errors of increments would add up over a chunk; errors of sums do not. The map is linear and has an inverse, so what is
learned is the same distribution of chunks. The gripper is not summed. μ_i and σ_i are those of the demonstrations.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from descend.contracts import Batch, Chance
from descend.nn.observation import Standardize
from descend.ops.robotics.execution import to_commands, to_increments
from descend.weights.pretrained import Pretrained


class ChunkPolicy(Pretrained):
    """A model of chunks of actions (b, T, a), the last of which is the gripper."""

    def __init__(self, state: int, actions: int, chunk: int):
        super().__init__()
        self.state_scale, self.action_scale = Standardize(state), Standardize(chunk * actions)

    @property
    def chunk(self) -> int:
        """T: how many actions are planned at once."""
        steps: int = self.config.chunk
        return steps

    def fit_scales(self, state: Tensor, chunk: Tensor) -> None:
        """From the states (n, s) and chunks (n, T, a) of the demonstrations."""
        self.state_scale.fit(state)
        self.action_scale.fit(add_up(chunk).flatten(1))

    def standardize(self, chunk: Tensor) -> Tensor:
        """Actions (b, T, a) in the units that the model learns."""
        return self.action_scale(add_up(chunk).flatten(1)).view_as(chunk)

    def restore(self, x: Tensor) -> Tensor:
        """Actions from what the model says (b, T, a)."""
        sums = self.action_scale.restore(x.flatten(1)).view_as(x)
        return to_increments(sums.new_zeros(len(sums), sums.shape[-1] - 1), sums)

    @torch.no_grad()
    def plan(self, seen: Batch, chance: Chance) -> Tensor:
        """The next actions (b, T, a)."""
        return self.restore(self.decide(seen, chance))

    @abstractmethod
    def decide(self, seen: Batch, chance: Chance) -> Tensor:
        """The same in the units that the model learns."""


def add_up(chunk: Tensor) -> Tensor:
    """Increments (b, T, a) as turns from the start; the gripper stays as it is."""
    return to_commands(chunk.new_zeros(len(chunk), chunk.shape[-1] - 1), chunk)
