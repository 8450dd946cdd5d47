"""From one example to another: the random numbers that make them, turned into each other.

    z(s) = sin((1 − s) Ω) / sin Ω · a + sin(s Ω) / sin Ω · b,        cos Ω = a·b / (|a| |b|)

Along this arc z(s) is as long as normal numbers are; along a straight line it would pass through unusually short ones,
and the middle of the way would look like nothing in the data. Uniform numbers take the same way as normal ones.
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import Chance


def slerp(a: Tensor, b: Tensor, share: Tensor) -> Tensor:
    """The arc from a to b (d) at shares (n): (n, d). Vectors in one direction are joined by a line."""
    p, q = a.double(), b.double()
    cosine = (p * q).sum() / (p.norm() * q.norm()).clamp(min=1e-12)
    angle = cosine.clamp(-1, 1).arccos().to(a)
    if angle.sin() < 1e-4:
        return torch.lerp(a, b, share[:, None])
    return ((1 - share[:, None]) * angle).sin() / angle.sin() * a + (share[:, None] * angle).sin() / angle.sin() * b


class Between:
    """The random numbers of examples on the way from one to another: count examples, both ends among them."""

    def __init__(self, start: Chance, end: Chance, count: int):
        self.start, self.end, self.shares = start, end, torch.linspace(0, 1, count)

    @property
    def count(self) -> int:
        return len(self.shares)

    def normal(self, *shape: int) -> Tensor:
        """On the arc."""
        return self.join(self.start.normal(*shape)[0], self.end.normal(*shape)[0])

    def uniform(self, *shape: int) -> Tensor:
        """On the arc of the normal numbers with the same ranks."""
        a, b = (chance.uniform(*shape)[0].double().clamp(1e-7, 1 - 1e-7) for chance in (self.start, self.end))
        return torch.special.ndtr(self.join(torch.special.ndtri(a), torch.special.ndtri(b))).float()

    def join(self, a: Tensor, b: Tensor) -> Tensor:
        return slerp(a.flatten(), b.flatten(), self.shares.to(a)).unflatten(1, a.shape)
