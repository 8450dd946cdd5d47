"""Heads of one-stage detectors on a pyramid: a few 3×3 convolutions and one more that predicts, shared by all levels.

    h_0 = M,  h_l = ReLU(norm(conv3×3(h_{l−1}))),  l = 1 .. depth        prediction = conv3×3(h_depth)

RetinaNet has no norm (`PlainTower`), FCOS group norm (`GroupNormTower`), which does not mix the levels' moments. One
tower leads to the classes and another to the boxes. A class starts at probability 0.01, so that the loss of the many
empty places does not drown the others (`start_unlikely`).

Systems: feature-pyramid-network
"""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn import functional as F

GROUPS = 32
"""Of channels, at most; a group has at least 8."""


def predict(width: int, outputs: int) -> nn.Conv2d:
    """The convolution that predicts, nearly 0 at the start."""
    layer = nn.Conv2d(width, outputs, 3, padding=1)
    nn.init.normal_(layer.weight, std=0.01)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer


class PlainTower(nn.Module):
    """(b, width, h, w) -> (b, width, h, w)"""

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.convs = nn.ModuleList(predict(width, width) for _ in range(depth))
        for conv in self.convs:  # He's deviation, which keeps narrow towers alive; published: 0.01
            nn.init.normal_(conv.weight, std=math.sqrt(2 / (9 * width)))  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        for conv in self.convs:
            x = F.relu(conv(x))
        return x


class GroupNormTower(nn.Module):
    """The same with group norm before each ReLU."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.convs = nn.ModuleList(predict(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.GroupNorm(math.gcd(GROUPS, max(1, width // 8)), width) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.relu(norm(conv(x)))
        return x
