"""Two classes of points in the plane that no line separates, so that a decision boundary can be plotted.

    moons      (cos t, sin t) and (1 − cos t, ½ − sin t), t in 0..π, with noise
    circles    radius 1 and ½, with noise
    xor        the corners of a square; opposite corners share a class
    factory    parts (size, weight): defects along the diagonal size = weight, good parts off it (VOM 9.8.8)

Systems: feature-lifting-factory, xor-and-inseparability
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from descend.data.streams.arrays import generator

Cloud = Callable[[int, float, int], tuple[Tensor, Tensor]]
"""n points, width of the noise, seed -> x (n, 2) and y (n) in {0, 1}."""


def moons(n: int, noise: float = 0.2, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two half circles that reach into each other."""
    random, y = generator(seed), torch.arange(n) % 2
    t = math.pi * torch.rand(n, generator=random)
    upper, lower = torch.stack([t.cos(), t.sin()], 1), torch.stack([1 - t.cos(), 0.5 - t.sin()], 1)
    return _noisy(torch.where(y[:, None] == 0, upper, lower), noise, random), y


def circles(n: int, noise: float = 0.1, seed: int = 0) -> tuple[Tensor, Tensor]:
    """A circle around another."""
    random, y = generator(seed), torch.arange(n) % 2
    t, radius = 2 * math.pi * torch.rand(n, generator=random), 1 - 0.5 * y
    return _noisy(radius[:, None] * torch.stack([t.cos(), t.sin()], 1), noise, random), y


def xor(n: int, noise: float = 0.15, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Clouds around the corners of the unit square; class 1 where one coordinate is high and the other low."""
    random, corner = generator(seed), torch.arange(n) % 4
    x = torch.stack([corner // 2, corner % 2], 1).float()
    return _noisy(x, noise, random), (corner // 2) ^ (corner % 2)


def factory(n: int, noise: float = 0.15, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Parts (size, weight): class 1, defects, where the two are alike; class 0 where they differ by 1.5 or more."""
    random, y = generator(seed), torch.arange(n) % 2
    size = 1 + 4 * torch.rand(n, generator=random)
    side = torch.where(torch.arange(n) % 4 < 2, 1.0, -1.0)
    off = torch.where(y == 1, torch.zeros(n), side * (1.5 + torch.rand(n, generator=random)))
    within = (noise * torch.randn(n, generator=random)).clamp(-0.5, 0.5)  # never as far as the other class
    return torch.stack([size, size + off + within], 1), y


def _noisy(x: Tensor, noise: float, random: torch.Generator) -> Tensor:
    return x + noise * torch.randn(x.shape, generator=random)
