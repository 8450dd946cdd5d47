"""Coupling functions: x = h(z; numbers), invertible in z, one variable at a time. What a layer may be given for h.

    additive   x = z + b                        1 number; keeps volumes (NICE)
    affine     x = e^s z + b                    2 numbers; RealNVP, MAF, IAF
    spline     z = rational-quadratic(x)        3K − 1 numbers; any monotone shape between −B and B

Each tells log|dh/dz|. The numbers come from a conditioner network that must see none of the variables it bends.

Systems: general-coupling-flow
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from descend.ops.splines import bend, place_knots, unbend


class Transform(Protocol):
    """h for every variable by itself: z (..) and numbers (.., n) -> x (..) and log|dx/dz| (..)."""

    @property
    def numbers(self) -> int:
        """How many numbers h needs for a variable."""

    def forward(self, z: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]: ...

    def inverse(self, x: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]: ...


class Additive:
    """x = z + b"""

    numbers = 1

    def forward(self, z: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        return z + numbers[..., 0], torch.zeros_like(z)

    def inverse(self, x: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        return x - numbers[..., 0], torch.zeros_like(x)


class Affine:
    """x = e^s z + b, s = limit · tanh(s̃ / limit) of the network's s̃; log|dx/dz| = s, and of the inverse −s

    A scale between e^−limit and e^limit cannot run away in a few bad steps; DLN lets s be any network.
    """

    numbers = 2

    def __init__(self, limit: float = 4.0):
        self.limit = limit

    def read(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """s and b"""
        raw, b = numbers.unbind(-1)
        return self.limit * (raw / self.limit).tanh(), b

    def forward(self, z: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        s, b = self.read(numbers)
        return s.exp() * z + b, s

    def inverse(self, x: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        s, b = self.read(numbers)
        return (-s).exp() * (x - b), -s


class Spline:
    """z = spline(x), a rational-quadratic one of K pieces on −bound..bound, the identity outside"""

    def __init__(self, pieces: int = 8, bound: float = 5.0):
        self.pieces, self.bound = pieces, bound

    @property
    def numbers(self) -> int:
        return 3 * self.pieces - 1

    def forward(self, z: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        return unbend(z, place_knots(numbers, self.bound))

    def inverse(self, x: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        return bend(x, place_knots(numbers, self.bound))
