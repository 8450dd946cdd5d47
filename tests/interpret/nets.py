"""Networks small enough to follow by hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Cam(nn.Module):
    """A convolution, global average pooling, one linear layer: where Grad-CAM has a closed form."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.conv(x).mean(dim=(2, 3)))


class Tokens(nn.Module):
    """Patches as tokens behind a class token: the shape of a vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, 6, 2, 2)
        self.first = nn.Parameter(torch.randn(1, 1, 6))
        self.block = nn.Linear(6, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        t = self.embed(x).flatten(2).transpose(1, 2)
        t = self.block(torch.cat([self.first.expand(len(x), -1, -1), t], dim=1))
        return self.head(t.mean(dim=1))


def vgg(seed: int = 0, linear: bool = False, overlap: bool = False) -> nn.Sequential:
    """Two convolutions with their ReLUs and pools, in float64."""
    torch.manual_seed(seed)
    relu = nn.Identity if linear else nn.ReLU
    pool = nn.MaxPool2d(3, 2, 1) if overlap else nn.MaxPool2d(2)
    net = nn.Sequential(
        nn.Conv2d(2, 5, 3, padding=1), relu(), pool, nn.Conv2d(5, 4, 3, stride=2), relu(), nn.MaxPool2d(2, 1)
    ).double()
    nn.init.ones_(net[3].bias)  # type: ignore[arg-type]
    return net  # every unit is alive
