"""Q-table: the value of every action in each of finitely many states, a number for each pair.

    Q(s, ·) = T_s = Tᵀ e_s        T (states, actions), the learned table

A state comes as its number or as the one-hot vector e_s, which is how environments show states to networks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.ranges import Finite, Length, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class QTableConfig:
    """The defaults fit FrozenLake: 16 cells, 4 moves."""

    observations: Length = 16
    """States."""
    actions: Width = 4
    initial: Finite = 0.0
    """What every pair is worth at first; above all that can be earned, it makes a greedy policy explore."""


class QTable(Pretrained):
    """states, as whole numbers (..) or one-hot (.., states) -> Q (.., actions)"""

    Config = QTableConfig

    def __init__(self, config: QTableConfig):
        super().__init__()
        c = self.config = config
        self.values = nn.Parameter(torch.full((c.observations, c.actions), float(c.initial)))

    def forward(self, observation: Tensor) -> Tensor:
        return observation @ self.values if observation.is_floating_point() else self.values[observation]


SIZES: dict[str, QTableConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = QTableConfig(observations=3, actions=2, initial=1.5)


def TINY_INPUT() -> Tensor:
    """Two states."""
    return torch.tensor([0, 2])


LAYOUT = Layout("QTable")
