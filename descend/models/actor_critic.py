"""Actor and critic for a finite set of actions: two multilayer perceptrons of one shape, with no shared layer.

    actor    π(a|s) = softmax(z(s))_a        z: what to do
    critic   V(s)                            how much reward is still to come
    h_l = tanh(W_l h_{l-1} + b_l)   l = 1..depth, then a linear head

Weights start orthogonal (gain √2; critic's head 1), biases 0. The actor's head starts at gain 0.01, so that the first
policy is close to uniform and the first data do not depend on accidents of the initial weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.native.proximal import TowerLayers
from descend.ranges import Depth, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class ActorCriticConfig:
    """The defaults fit CartPole: 4 observations, 2 actions."""

    observations: Width = 4
    actions: Width = 2
    width: Width = 64
    depth: Depth = 2


class Tower(nn.Module):
    """Tanh layers and a linear head, orthogonal at the start."""

    def __init__(self, inputs: int, width: int, depth: int, outputs: int, gain: float):
        super().__init__()
        sizes = [inputs, *[width] * depth]
        self.hidden = nn.ModuleList(orthogonal(i, o, math.sqrt(2)) for i, o in pairwise(sizes))
        self.out = orthogonal(sizes[-1], outputs, gain)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.hidden:
            x = layer(x).tanh()
        return self.out(x)

    def layers(self) -> list[tuple[Tensor, Tensor]]:
        """W and b of each layer, the head last."""
        return [(layer.weight, layer.bias) for layer in (*self.hidden, self.out)]


class ActorCritic(Pretrained):
    """observation (.., o) -> logits (.., actions) and V (..)"""

    Config = ActorCriticConfig

    def __init__(self, config: ActorCriticConfig):
        super().__init__()
        c = self.config = config
        self.actor = Tower(c.observations, c.width, c.depth, c.actions, gain=0.01)
        self.critic = Tower(c.observations, c.width, c.depth, 1, gain=1.0)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        return self.actor(observation), self.critic(observation).squeeze(-1)

    def layers(self) -> TowerLayers:
        """Its two networks."""
        return TowerLayers(self.actor.layers(), self.critic.layers())

    def actor_now(self) -> Callable[[Tensor], Tensor]:
        """observation -> logits, with the weights as they are, for the many small questions of a rollout."""
        return act_by(self.actor.layers())

    def split(self) -> tuple[nn.Module, nn.Module]:
        """observation -> logits, and observation -> V (.., 1): the two parts, for optimizers of their own."""
        return self.actor, self.critic


def act_by(layers: list[tuple[Tensor, Tensor]]) -> Callable[[Tensor], Tensor]:
    """A tower without its critic, its modules and its graph: the numbers of `Tower`, in a third of the time."""
    *hidden, (w_out, b_out) = layers

    def ask(x: Tensor) -> Tensor:
        x = x.to(w_out.device)
        for w, b in hidden:
            x = F.linear(x, w, b).tanh_()
        return F.linear(x, w_out, b_out)

    return ask


def orthogonal(inputs: int, outputs: int, gain: float) -> nn.Linear:
    """A linear layer with WᵀW = gain² I (or WWᵀ, whichever is smaller) and b = 0."""
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


SIZES: dict[str, ActorCriticConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = ActorCriticConfig(observations=3, actions=2, width=8, depth=2)


def TINY_INPUT() -> Tensor:
    """Two observations."""
    return torch.randn(2, TINY.observations, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("ActorCritic")
