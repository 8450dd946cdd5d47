"""Densities in the plane that can be sampled and evaluated, so that what a model of them has lost is a number.

    moons          p(x) = ½ Σ_moon (1/π) ∫_0^π N(x; c(t), σ² I) dt
                   c(t) = (cos t, sin t) and (1 − cos t, ½ − sin t): the half circles of scikit-learn's make_moons
    ring, grid     equal Gaussians on a circle or a square: `mixture.py`
    checkerboard   uniform on every second square of a board
    pinwheel       Gaussians (mean (1, 0), σ_r = 0.3 along the arm and σ across) rotated by 2πk/K + ¼ e^‖x‖

The integral over an arc is a Gauss-Legendre sum, in effect a mixture of a few hundred Gaussians, exact to rounding. A
rotation by an angle that depends on the distance from the origin alone keeps areas, so a pinwheel's density is that of
the unrotated Gaussians. The negative log-likelihood that no model can beat is the entropy, a sum over a fine grid:

    H = −∫ p(x) log p(x) dx        1.0076 for moons with σ = 0.1
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from descend.data.toys.mixture import Mixture, grid, ring
from descend.errors import Mistake

NODES_PER_WIDTH = 3  # nodes of the sum along an arc in a length of σ
CHUNK = 4096  # points evaluated at once
CELLS = 300  # of the entropy's grid, a side

Box = tuple[float, float, float, float]
"""left, right, bottom, top"""


class Density(Protocol):
    """A distribution of points in the plane."""

    @property
    def box(self) -> Box:
        """Where nearly all of it is."""

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n points (n, 2)."""

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x) of points (n, 2): (n)."""


@dataclass(frozen=True)
class Gaussians:
    """A mixture of Gaussians as a density."""

    mixture: Mixture

    @property
    def box(self) -> Box:
        width = 6 * float(self.mixture.sigma.max())
        (left, bottom), (right, top) = self.mixture.mu.amin(0).tolist(), self.mixture.mu.amax(0).tolist()
        return left - width, right + width, bottom - width, top + width

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        return self.mixture.sample(n, generator)[0]

    def log_prob(self, x: Tensor) -> Tensor:
        m = self.mixture
        m = Mixture(m.pi.to(x), m.mu.to(x), m.sigma.to(x))
        return torch.cat([m.log_prob(part) for part in x.split(CHUNK)])


class Moons(Gaussians):
    """Two half circles that reach into each other, with Gaussian noise of width `noise`."""

    def __init__(self, noise: float = 0.1):
        nodes, weights = np.polynomial.legendre.leggauss(math.ceil(NODES_PER_WIDTH * math.pi / noise))
        upper, lower = arcs(torch.from_numpy((nodes + 1) * math.pi / 2))
        pi = torch.from_numpy(weights).repeat(2) / 4
        super().__init__(Mixture(pi, torch.cat([upper, lower]), torch.full_like(pi, noise)))

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Each moon with the probability ½, a uniform place on it, noise."""
        first = torch.rand(n, 1, generator=generator) < 0.5
        upper, lower = arcs(math.pi * torch.rand(n, generator=generator))
        noise = float(self.mixture.sigma[0]) * torch.randn(n, 2, generator=generator)
        return torch.where(first, upper, lower) + noise


def arcs(t: Tensor) -> tuple[Tensor, Tensor]:
    """Points of the upper and of the lower moon at the angles t."""
    return torch.stack([t.cos(), t.sin()], 1), torch.stack([1 - t.cos(), 0.5 - t.sin()], 1)


@dataclass(frozen=True)
class Checkerboard:
    """Uniform on the squares of one colour: those (i, j) of side × side with i + j even, from −radius to radius."""

    side: int = 4
    radius: float = 2.0

    @property
    def box(self) -> Box:
        return -self.radius, self.radius, -self.radius, self.radius

    def squares(self) -> Tensor:
        """The squares of the colour that has points, (k, 2)."""
        i = torch.arange(self.side)
        both = torch.cartesian_prod(i, i)
        return both[both.sum(1) % 2 == 0]

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        squares = self.squares()
        at = squares[torch.randint(len(squares), (n,), generator=generator)]
        return (at + torch.rand(n, 2, generator=generator)) * (2 * self.radius / self.side) - self.radius

    def log_prob(self, x: Tensor) -> Tensor:
        cell = ((x + self.radius) * (self.side / (2 * self.radius))).floor()
        inside = ((cell >= 0) & (cell < self.side)).all(1) & (cell.sum(1) % 2 == 0)
        area = len(self.squares()) * (2 * self.radius / self.side) ** 2
        return torch.where(inside, -math.log(area), -math.inf).to(x)


@dataclass(frozen=True)
class Pinwheel:
    """Arms that turn the more the farther they are from the centre."""

    arms: int = 5
    noise: float = 0.1
    """Width across an arm."""
    length: float = 0.3
    """Width along an arm."""
    twist: float = 0.25

    @property
    def box(self) -> Box:
        reach = 1 + 6 * max(self.length, self.noise)
        return -reach, reach, -reach, reach

    def turns(self, x: Tensor) -> Tensor:
        """The angle by which each arm is turned at the points x: (n, arms)."""
        arms = 2 * math.pi / self.arms * torch.arange(self.arms, dtype=x.dtype, device=x.device)
        return arms + self.twist * x.norm(dim=1, keepdim=True).exp()

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        arm = torch.randint(self.arms, (n, 1), generator=generator)
        x = torch.randn(n, 2, generator=generator) * torch.tensor([self.length, self.noise]) + torch.tensor([1.0, 0.0])
        return rotate(x, self.turns(x).gather(1, arm).squeeze(1))

    def log_prob(self, x: Tensor) -> Tensor:
        turns = self.turns(x)
        straight = torch.stack([rotate(x, -turns[:, k]) for k in range(self.arms)], 1)  # (n, arms, 2)
        along, across = ((straight[..., 0] - 1) / self.length).square(), (straight[..., 1] / self.noise).square()
        constant = math.log(2 * math.pi * self.length * self.noise * self.arms)
        return (-(along + across) / 2).logsumexp(1) - constant


def rotate(x: Tensor, angle: Tensor) -> Tensor:
    """Points (n, 2) rotated by the angles (n)."""
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([cos * x[:, 0] - sin * x[:, 1], sin * x[:, 0] + cos * x[:, 1]], 1)


def ring_of_gaussians(modes: int = 8, radius: float = 2.0, noise: float = 0.1) -> Gaussians:
    return Gaussians(ring(modes, radius, noise))


def grid_of_gaussians(modes: int = 25, radius: float = 2.0, noise: float = 0.1) -> Gaussians:
    side = math.isqrt(modes)
    if side**2 != modes:
        raise Mistake(f"--data.modes {modes}: a grid needs a square number, e.g. {side**2} or {(side + 1) ** 2}")
    return Gaussians(grid(side, radius, noise))


def entropy(density: Density, cells: int = CELLS) -> float:
    """H = −∫ p log p: the least negative log-likelihood, in nats, by the midpoint rule in float64."""
    x, area = cover(density.box, cells)
    log_p = density.log_prob(x)
    p = log_p.exp()
    return -float(torch.where(p > 0, p * log_p, 0).sum() * area)


def cover(box: Box, cells: int) -> tuple[Tensor, float]:
    """The middles of cells × cells rectangles of a box (cells², 2), row by row from the lowest, and the area of one."""
    left, right, bottom, top = box
    middle = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    up, across = torch.meshgrid(bottom + (top - bottom) * middle, left + (right - left) * middle, indexing="ij")
    return torch.stack([across.flatten(), up.flatten()], 1), (right - left) * (top - bottom) / cells**2
