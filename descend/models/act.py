"""ACT, action chunking with transformers: a conditional variational autoencoder of the next T actions.

    style encoder    [CLS], s, a_1 .. a_T -> z ~ N(μ, diag σ²)                 training only: how a demonstrator moves
    policy           z, s, image tokens -> transformer encoder -> memory
                     T learned queries -> self-attention, attention to the memory -> a_1 .. a_T
    loss             Σ |a − â| / (T · 7) + β KL(q(z|s, a) ‖ N(0, I))           `tasks/imitate.py`
    acting           z = 0, the mean of the prior

MF 30.3.3 gives the chunk (T = 16 actions of 6 joint increments and a gripper) and not the inside; the CVAE, the L1
loss, z = 0 and temporal ensembling (`ops/robotics/execution.py`) are the original's. Here blocks are pre-norm, and
images go through three convolutions instead of a ResNet. T = 1 plans one step at a time.

Systems: act-policy
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Chance
from descend.models._policy import ChunkPolicy
from descend.nn.attention.multi_head import Attention
from descend.nn.encoder import Encoder, PreNormBlock
from descend.nn.mlp import MLP
from descend.nn.observation import ObservationTokens
from descend.nn.posterior import GaussianPosterior
from descend.ranges import Depth, Side, Width
from descend.weights.layout import Layout


class QueryBlock(nn.Module):
    """Queries look at each other, then at the memory: x (b, T, d), memory (b, n, d) -> (b, T, d)"""

    def __init__(self, width: int, heads: int, hidden: int):
        super().__init__()
        self.norm_1, self.norm_2, self.norm_3 = (nn.LayerNorm(width) for _ in range(3))
        self.attn, self.cross = Attention(width, heads), Attention(width, heads)
        self.mlp = MLP(width, hidden, nn.GELU())

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        x = x + self.attn(self.norm_1(x))
        x = x + self.cross(self.norm_2(x), memory)
        return x + self.mlp(self.norm_3(x))


class StyleEncoder(nn.Module):
    """state (b, s) and actions (b, T, a), standardized -> what a posterior of z is made of (b, d)"""

    def __init__(self, state: int, actions: int, chunk: int, encoder: Encoder, width: int):
        super().__init__()
        self.start = nn.Parameter(0.02 * torch.randn(width))
        self.state, self.action = nn.Linear(state, width), nn.Linear(actions, width)
        self.places = nn.Parameter(0.02 * torch.randn(chunk + 2, width))
        self.encoder, self.norm = encoder, nn.LayerNorm(width)

    def forward(self, state: Tensor, chunk: Tensor) -> Tensor:
        start = self.start.expand(len(state), 1, -1)
        row = torch.cat([start, self.state(state)[:, None], self.action(chunk)], dim=1)
        return self.norm(self.encoder(row + self.places)[:, 0])


class PlannedChunk(NamedTuple):
    """Actions in standardized units (b, T, a), and KL(q ‖ p) (b)."""

    actions: Tensor
    kl: Tensor


@dataclass(frozen=True)
class ACTConfig:
    """A recipe takes `state`, `actions` and `image` from its data."""

    state: Width = 10
    actions: Width = 7
    chunk: Width = 16
    """T: actions planned at once; 1: step by step."""
    latent: Width = 16
    """Numbers of z."""
    width: Width = 96
    heads: Width = 4
    hidden: Width = 192
    depth: Depth = 2
    """Layers of each of the three transformers."""
    image: tuple[Side, ...] = ()
    """Height and width of what the camera shows; none: no camera."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "image", tuple(self.image))  # a list when read from config.json


class ACT(ChunkPolicy):
    """state (b, s), chunk (b, T, a), ε (b, latent), image (b, 3, h, w) or none -> planned actions and KL"""

    Config = ACTConfig

    def __init__(self, config: ACTConfig):
        super().__init__(config.state, config.actions, config.chunk)
        c = self.config = config
        make = lambda: Encoder([PreNormBlock(c.width, c.heads, c.hidden, nn.GELU()) for _ in range(c.depth)])
        self.style = StyleEncoder(c.state, c.actions, c.chunk, make(), c.width)
        self.posterior = GaussianPosterior(c.width, c.latent)
        self.observe = ObservationTokens(c.state, c.width, c.image)
        self.latent = nn.Linear(c.latent, c.width)
        self.encoder = make()
        self.queries = nn.Parameter(0.02 * torch.randn(c.chunk, c.width))
        self.decoder = nn.ModuleList(QueryBlock(c.width, c.heads, c.hidden) for _ in range(c.depth))
        self.norm, self.head = nn.LayerNorm(c.width), nn.Linear(c.width, c.actions)

    def forward(self, state: Tensor, chunk: Tensor, eps: Tensor, image: Tensor | None = None) -> PlannedChunk:
        style = self.posterior(self.style(self.state_scale(state), self.standardize(chunk)), eps[:, None])
        return PlannedChunk(self.decode(state, style.z[:, 0], image), style.kl)

    def decode(self, state: Tensor, z: Tensor, image: Tensor | None = None) -> Tensor:
        """Actions (b, T, a) of a style z (b, latent)."""
        seen = self.observe(self.state_scale(state), image)
        memory = self.encoder(torch.cat([self.latent(z)[:, None], seen], dim=1))
        x = self.queries.expand(len(state), -1, -1)
        for block in self.decoder:
            x = block(x, memory)
        return self.head(self.norm(x))

    def decide(self, seen: Batch, chance: Chance) -> Tensor:
        """With z = 0."""
        z = seen["state"].new_zeros(len(seen["state"]), self.config.latent)
        return self.decode(seen["state"], z, seen.get("image"))


SIZES: dict[str, ACTConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = ACTConfig(state=4, actions=3, chunk=2, latent=2, width=8, heads=2, hidden=16, depth=1, image=(8, 16))


def TINY_INPUT() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Two states with their chunks, noise and images."""
    random = torch.Generator().manual_seed(0)
    state, chunk = torch.randn(2, 4, generator=random), torch.randn(2, 2, 3, generator=random)
    return state, chunk, torch.randn(2, 2, generator=random), torch.rand(2, 3, 8, 16, generator=random)


LAYOUT = Layout("ACT")
