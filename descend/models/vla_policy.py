"""A vision-language-action policy: an image, the words of an instruction and the robot's state in, actions out.

    t = mean of a small transformer over words + places            what was said
    where = coordinates of 16 places of the image, found by convolutions whose maps t scales and shifts
    X = [ where | words | state | T learned queries + where ]      one row of tokens
    transformer encoder, every token looks at every other (padding is not looked at)
    a_1 .. a_T = W norm(X'_queries) + b                            joint increments and the gripper

The same scene with another instruction is another row of tokens, so it may lead to another target. The words that it
knows are part of its config; others are refused. MF names such models only; large ones start from a vision-language
model and may write actions as tokens, this one is trained from nothing and writes numbers. That the text modulates the
image is RT-1's, the spatial softmax that of visuomotor policies before it: with plain patches of 8×8 pixels in the
row, 4000 steps did not connect the name of a colour with its pixels. `where` is added to every query, too: when it only
stood in the row, behind four layers of attention, the connection took two to three times as many steps.

Systems: vla-policy
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Chance
from descend.models._policy import ChunkPolicy
from descend.nn.encoder import Encoder, PreNormBlock
from descend.nn.observation import LookedAt
from descend.ranges import Depth, Length, Side, Width
from descend.text.word_table import encode_words
from descend.weights.layout import Layout

READER = 2  # layers over the words


@dataclass(frozen=True)
class VLAConfig:
    """A recipe takes sizes and words from its data."""

    state: Width = 7
    actions: Width = 7
    chunk: Width = 16
    """T: actions planned at once."""
    image: tuple[Side, ...] = (48, 64)
    """Height and width of what the camera shows."""
    words: tuple[str, ...] = ()
    """What an instruction may be made of."""
    longest: Length = 16
    """Words in an instruction, at most."""
    width: Width = 96
    heads: Width = 4
    hidden: Width = 192
    depth: Depth = 4

    def __post_init__(self) -> None:
        for name in ("image", "words"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))


class VLAPolicy(ChunkPolicy):
    """state (b, s), image (b, 3, h, w), tokens (b, l) of words, 0 where there is none -> actions (b, T, a)"""

    Config = VLAConfig

    def __init__(self, config: VLAConfig):
        super().__init__(config.state, config.actions, config.chunk)
        c = self.config = config
        height, width = c.image
        self.reader = Encoder([PreNormBlock(c.width, c.heads, c.hidden, nn.GELU()) for _ in range(READER)])
        self.where = LookedAt(height, width, c.width, c.width)
        self.words = nn.Embedding(len(c.words) + 1, c.width)
        self.places = nn.Parameter(0.02 * torch.randn(c.longest, c.width))
        self.state = nn.Linear(c.state, c.width)
        self.queries = nn.Parameter(0.02 * torch.randn(c.chunk, c.width))
        self.encoder = Encoder([PreNormBlock(c.width, c.heads, c.hidden, nn.GELU()) for _ in range(c.depth)])
        self.norm, self.head = nn.LayerNorm(c.width), nn.Linear(c.width, c.actions)

    def forward(self, state: Tensor, image: Tensor, tokens: Tensor) -> Tensor:
        spoken = tokens > 0
        words = self.reader(self.words(tokens) + self.places[: tokens.shape[1]], spoken)
        told = (words * spoken[..., None]).sum(dim=1) / spoken.sum(dim=1, keepdim=True)
        where = self.where(image, told)
        queries = self.queries + where
        row = torch.cat([where, words, self.state(self.state_scale(state))[:, None], queries], dim=1)
        real = torch.ones(row.shape[:2], dtype=torch.bool, device=row.device)
        real[:, where.shape[1] : where.shape[1] + words.shape[1]] = spoken
        return self.head(self.norm(self.encoder(row, real)[:, -self.config.chunk :]))

    def encode_text(self, texts: Sequence[str]) -> Tensor:
        """Instructions as numbers of words (b, longest)."""
        return encode_words(texts, self.config.words, self.config.longest)

    def estimate(self, seen: Batch) -> Tensor:
        """What regression compares with the demonstration."""
        return self(seen["state"], seen["image"], seen["tokens"])

    def decide(self, seen: Batch, chance: Chance) -> Tensor:
        return self.estimate(seen)


SIZES: dict[str, VLAConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = VLAConfig(
    state=4, actions=3, chunk=2, image=(8, 16), words=("blue", "pick", "red"), longest=3, width=8, heads=2, hidden=16,
    depth=1,
)  # fmt: skip


def TINY_INPUT() -> tuple[Tensor, Tensor, Tensor]:
    """Two states, images and instructions."""
    random = torch.Generator().manual_seed(0)
    state, image = torch.randn(2, 4, generator=random), torch.rand(2, 3, 8, 16, generator=random)
    return state, image, torch.tensor([[2, 3, 1], [2, 1, 3]])


LAYOUT = Layout("VLAPolicy")
