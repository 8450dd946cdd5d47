"""Diffusion Policy: a chunk of actions is drawn from noise, cleaned step by step in the light of what is seen.

    A_t = √ᾱ_t A + √(1 − ᾱ_t) ε,    L = E ‖A − f_θ(A_t, t, O)‖² / numbers of A          A: T actions of a numbers
    acting: A_T ~ N(0, I), then the library's samplers (`sampling/diffusion`) down to A_0, given O

It samples from what was demonstrated instead of averaging it: of two ways around an obstacle it takes one or the other.
The original predicts the noise ε (`plan.predicts` eps); a small network does better if it says the chunk itself, since
it need not carry the noise through. MF names Diffusion Policy only; this is its transformer form, with tokens
of the noisy actions, the time and the observation in one encoder. Noise comes with the episode, so that an episode can
be played again.

Systems: diffusion-policy
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Chance
from descend.models._policy import ChunkPolicy
from descend.nn.diffusion.time_embedding import TimeEmbedding, embed_time
from descend.nn.encoder import Encoder, PreNormBlock
from descend.nn.observation import ObservationTokens
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.ranges import Depth, Side, Width
from descend.sampling.diffusion.samplers import draw
from descend.weights.layout import Layout

WAVES = 64  # sinusoids of the time
PERIOD = 1000  # what T is for the sinusoids, however many steps there are


def choose_few_steps() -> Plan:
    """100 levels of noise on a cosine, as the original has, sampled in 10 steps of DDIM."""
    return Plan(NoiseSchedule("cosine", steps=100), "x0", "ddim", steps=10, spacing="trailing", clip=5.0)


@dataclass(frozen=True)
class DiffusionPolicyConfig:
    """A recipe takes `state`, `actions` and `image` from its data."""

    state: Width = 10
    actions: Width = 7
    chunk: Width = 16
    """T: actions planned at once."""
    width: Width = 96
    heads: Width = 4
    hidden: Width = 192
    depth: Depth = 3
    image: tuple[Side, ...] = ()
    """Height and width of what the camera shows; none: no camera."""
    plan: Plan = field(default_factory=choose_few_steps)

    def __post_init__(self) -> None:
        object.__setattr__(self, "image", tuple(self.image))  # a list when read from config.json


class DiffusionPolicy(ChunkPolicy):
    """noisy actions (b, T, a), time steps (b), state (b, s), image or none -> the prediction (b, T, a)"""

    Config = DiffusionPolicyConfig

    def __init__(self, config: DiffusionPolicyConfig):
        super().__init__(config.state, config.actions, config.chunk)
        c = self.config = config
        self.observe = ObservationTokens(c.state, c.width, c.image)
        self.time = TimeEmbedding(WAVES, c.width)
        self.action, self.places = nn.Linear(c.actions, c.width), nn.Parameter(0.02 * torch.randn(c.chunk, c.width))
        self.encoder = Encoder([PreNormBlock(c.width, c.heads, c.hidden, nn.GELU()) for _ in range(c.depth)])
        self.norm, self.head = nn.LayerNorm(c.width), nn.Linear(c.width, c.actions)

    @property
    def noise(self) -> Plan:
        """Levels of noise, what is predicted, and how it is sampled."""
        plan: Plan = self.config.plan
        return plan

    def forward(self, noisy: Tensor, t: Tensor, state: Tensor, image: Tensor | None = None) -> Tensor:
        return self.denoise(noisy, t, self.observe(self.state_scale(state), image))

    def denoise(self, noisy: Tensor, t: Tensor, seen: Tensor) -> Tensor:
        """The prediction, from tokens of the observation (b, n, d)."""
        time = self.time(embed_time(t * (PERIOD / self.noise.noise.steps), WAVES))[:, None]
        row = torch.cat([self.action(noisy) + self.places + time, time, seen], dim=1)
        return self.head(self.norm(self.encoder(row)[:, : self.config.chunk]))

    def decide(self, seen: Batch, chance: Chance) -> Tensor:
        """A sample of the chunks that demonstrators made here; the observation is read once."""
        tokens = self.observe(self.state_scale(seen["state"]), seen.get("image"))
        fresh = lambda: chance.normal(self.config.chunk, self.config.actions).to(tokens)
        return draw(lambda x, t: self.denoise(x, t, tokens), fresh(), self.noise, fresh)


SIZES: dict[str, DiffusionPolicyConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = DiffusionPolicyConfig(state=4, actions=3, chunk=2, width=8, heads=2, hidden=16, depth=1, image=(8, 16))


def TINY_INPUT() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Two noisy chunks at two times, states and images."""
    random = torch.Generator().manual_seed(0)
    noisy, state = torch.randn(2, 2, 3, generator=random), torch.randn(2, 4, generator=random)
    return noisy, torch.tensor([3, 90]), state, torch.rand(2, 3, 8, 16, generator=random)


LAYOUT = Layout("DiffusionPolicy", parts={"plan": Plan})
