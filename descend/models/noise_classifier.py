"""A classifier of noisy images that is told how noisy they are: p(y | x_t, t), for classifier guidance.

    h_1 = silu(W_1 x + e(t)),   h_l = h_{l−1} + silu(W_l h_{l−1} + b_l),   logits = W h

It is trained on x_t = √ᾱ_t x_0 + √(1 − ᾱ_t) ε at every t (`tasks/classify_noisy.py`), so that its input gradients
∇ log p(y | x_t) mean something at every level of noise; a classifier of clean images has arbitrary ones there.

Systems: classifier-guidance
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from descend.nn.diffusion.time_embedding import TimeEmbedding, embed_time
from descend.ops.diffusion.guidance import classifier_gradient
from descend.ops.diffusion.plan import Plan
from descend.ranges import Depth, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

WAVES = 64


@dataclass(frozen=True)
class NoiseClassifierConfig:
    """Images, classes and hidden layers; the plan has the noise schedule that it was trained with."""

    image: tuple[Side, Side, Side] = (1, 8, 8)
    classes: Width = 10
    width: Width = 128
    depth: Depth = 3
    plan: Plan = field(default_factory=Plan)


class NoiseClassifier(Pretrained):
    """noisy images (b, c, h, w) and their time steps (b) -> logits (b, classes)"""

    Config = NoiseClassifierConfig

    def __init__(self, config: NoiseClassifierConfig):
        super().__init__()
        c = self.config = config
        self.first, self.time = nn.Linear(math.prod(c.image), c.width), TimeEmbedding(WAVES, c.width)
        self.hidden = nn.ModuleList(nn.Linear(c.width, c.width) for _ in range(c.depth - 1))
        self.head = nn.Linear(c.width, c.classes)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        h = nn.functional.silu(self.first(x.flatten(1)) + self.time(embed_time(t, WAVES)))
        for layer in self.hidden:
            h = h + nn.functional.silu(layer(h))
        return self.head(h)

    def gradient(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        """∇_x log p(y | x, t), in the shape of x."""
        return classifier_gradient(self, x, t, y)


SIZES: dict[str, NoiseClassifierConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = NoiseClassifierConfig(image=(1, 4, 4), classes=3, width=8, depth=2)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two noisy images at two times."""
    return torch.randn(2, 1, 4, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([3, 900])


LAYOUT = Layout("NoiseClassifier", parts={"plan": Plan})
