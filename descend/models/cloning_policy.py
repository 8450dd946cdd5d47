"""Behaviour cloning: a perceptron from the state to the next actions, by regression on demonstrations.

    h_l = relu(W_l h_{l−1} + b_l),   a_1..a_T = W h + b

With squared error it learns the mean of what was demonstrated, with absolute error the median: where there are two ways
around an obstacle, the mean of both is neither. A chunk of T = 1 is step-wise cloning.

Systems: act-policy
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Chance
from descend.models._policy import ChunkPolicy
from descend.ranges import Depth, Width
from descend.weights.layout import Layout


@dataclass(frozen=True)
class CloningPolicyConfig:
    """A recipe takes `state` and `actions` from its data."""

    state: Width = 10
    actions: Width = 7
    chunk: Width = 16
    width: Width = 256
    depth: Depth = 3


class CloningPolicy(ChunkPolicy):
    """state (b, s) -> actions (b, T, a), standardized"""

    Config = CloningPolicyConfig

    def __init__(self, config: CloningPolicyConfig):
        super().__init__(config.state, config.actions, config.chunk)
        c = self.config = config
        sizes = [c.state, *[c.width] * c.depth]
        self.hidden = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))
        self.out = nn.Linear(c.width, c.chunk * c.actions)

    def forward(self, state: Tensor) -> Tensor:
        h = self.state_scale(state)
        for layer in self.hidden:
            h = layer(h).relu()
        return self.out(h).unflatten(-1, (self.config.chunk, self.config.actions))

    def estimate(self, seen: Batch) -> Tensor:
        """What regression compares with the demonstration."""
        return self(seen["state"])

    def decide(self, seen: Batch, chance: Chance) -> Tensor:
        return self.estimate(seen)


SIZES: dict[str, CloningPolicyConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = CloningPolicyConfig(state=4, actions=3, chunk=2, width=8, depth=2)


def TINY_INPUT() -> Tensor:
    """Two states."""
    return torch.randn(2, TINY.state, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("CloningPolicy")
