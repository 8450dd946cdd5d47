"""Q-network: the value of every action in a state, from a multilayer perceptron.

    h_0 = s,   h_l = relu(W_l h_{l-1} + b_l)   l = 1..depth,   Q(s, ·) = W_out h_depth + b_out

One forward pass gives Q for all actions, so max_a Q(s, a) and the greedy action cost one pass.
For observations that are vectors; left out: the convolutions that the Atari network puts before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.ranges import Depth, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class QNetworkConfig:
    """The defaults fit CartPole: 4 observations, 2 actions."""

    observations: Width = 4
    actions: Width = 2
    width: Width = 128
    depth: Depth = 2


class QNetwork(Pretrained):
    """observation (b, o) -> Q (b, actions)"""

    Config = QNetworkConfig

    def __init__(self, config: QNetworkConfig):
        super().__init__()
        c = self.config = config
        sizes = [c.observations, *[c.width] * c.depth]
        self.hidden = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))
        self.out = nn.Linear(sizes[-1], c.actions)

    def forward(self, observation: Tensor) -> Tensor:
        h = observation
        for layer in self.hidden:
            h = layer(h).relu()
        return self.out(h)


SIZES: dict[str, QNetworkConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = QNetworkConfig(observations=3, actions=2, width=8, depth=2)


def TINY_INPUT() -> Tensor:
    """Two observations."""
    return torch.randn(2, TINY.observations, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("QNetwork")
