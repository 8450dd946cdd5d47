"""Random numbers for new examples, a generator for each: example i of seed s is the same in every batch.

z_i ~ N(0, I) from the generator of (s, i)
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.seeds import generator


class PerExample:
    """The random numbers of the examples first, first + 1, .. of a seed, on a device."""

    def __init__(self, seed: int, count: int, first: int = 0, device: torch.device | str = "cpu"):
        self.generators = [generator(seed, first + i) for i in range(count)]
        self.device = device

    @property
    def count(self) -> int:
        return len(self.generators)

    def normal(self, *shape: int) -> Tensor:
        """N(0, 1) of this shape for each example."""
        return torch.stack([torch.randn(shape, generator=random) for random in self.generators]).to(self.device)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform in 0..1."""
        return torch.stack([torch.rand(shape, generator=random) for random in self.generators]).to(self.device)
