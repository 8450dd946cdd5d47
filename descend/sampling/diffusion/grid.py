"""Where a sampler stops: the times t that the network is told, and the noise levels ᾱ there.

    σ² = (1 − ᾱ) / ᾱ        the noise-to-signal ratio, the noise level of the scaled x / √ᾱ = x_0 + σ ε

Times count 0..T−1; the books' t is one more. A grid of n steps has n times and n + 1 levels, the last of which is where
the sample ends (ᾱ = 1, the image). Any falling sub-sequence of times is a grid: `Grid.of`.

Systems: ddim
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.diffusion.plan import Plan, Spacing
from descend.ops.diffusion.schedule import NoiseSchedule

RHO = 7.0  # Karras et al.
LEAST_ABAR = 2.0**-24  # stands for ᾱ = 0, where σ would be infinite
SOLVERS = ("dpm++", "dpm++sde", "unipc")
SCALED = ("euler", "euler-ancestral", "heun")


@dataclass(frozen=True)
class Grid:
    """n times, falling, and n + 1 levels, rising."""

    t: Tensor
    """(n) float64"""
    abar: Tensor
    """(n + 1) float64"""

    @classmethod
    def of(cls, noise: NoiseSchedule, times: Sequence[int], end: float = 1.0) -> Grid:
        """The grid of any falling times in 0..T−1."""
        t = torch.tensor(times, dtype=torch.long)
        if not len(t) or (t < 0).any() or (t >= noise.steps).any() or (t.diff() >= 0).any():
            raise Mistake(f"times of a sampler must fall, from at most {noise.steps - 1} to at least 0")
        return cls(t.double(), torch.cat([noise.abar()[t], torch.tensor([end], dtype=torch.float64)]))

    @property
    def sigma(self) -> Tensor:
        """σ (n + 1)"""
        return noise_to_signal(self.abar)

    def __len__(self) -> int:
        return len(self.t)


def make_grid(plan: Plan, steps: int = 0) -> Grid:
    """Where the plan's method stops in so many steps (0: as many as the plan says)."""
    noise, method = plan.noise, plan.method
    steps = steps or plan.steps or noise.steps
    if not 1 <= steps <= noise.steps:
        raise Mistake(f"--steps {steps}: the schedule has {noise.steps} steps of noise; give 1 to {noise.steps}")
    end = 1.0 if plan.end == "image" else float(noise.abar()[0])
    if method in SCALED:
        t = choose_times(noise.steps, steps, plan.spacing, plan.offset, whole=False)
    elif method in SOLVERS and plan.spacing != "trailing":  # the end is one of the n + 1 points between
        if steps == noise.steps:
            raise Mistake(f"--steps {steps}: {method} needs fewer than the schedule's {noise.steps}")
        t = choose_times(noise.steps, steps + 1, plan.spacing, plan.offset)[:-1]
    else:
        t = choose_times(noise.steps, steps, plan.spacing, plan.offset)
    if plan.sigmas == "karras":
        return karras_grid(noise, t if method in SCALED else None, steps, end, whole=method not in SCALED)
    if method in (*SCALED, *SOLVERS):
        levels = interpolate_levels(noise, t)
    else:
        levels = noise.abar()[t.long()]
    return Grid(t, torch.cat([levels, torch.tensor([end], dtype=torch.float64)]))


def choose_times(total: int, steps: int, spacing: Spacing, offset: int = 0, whole: bool = True) -> Tensor:
    """n falling times of 0..T−1 (float64; whole numbers unless `linspace` may have others)."""
    if spacing == "linspace":
        t = torch.linspace(0, total - 1, steps, dtype=torch.float64).flip(0)
        return t.round() if whole else t
    if spacing == "leading":
        t = (torch.arange(steps) * (total // steps)).flip(0).double() + offset
        return t.clamp(max=total - 1)
    return (total - torch.arange(steps).double() * (total / steps)).round() - 1


def keep_some_signal(abar: Tensor) -> Tensor:
    """ᾱ with a very small value instead of 0."""
    return abar.masked_fill(abar == 0, LEAST_ABAR)


def noise_to_signal(abar: Tensor) -> Tensor:
    """σ = √((1 − ᾱ) / ᾱ)"""
    abar = keep_some_signal(abar)
    return ((1 - abar) / abar).sqrt()


def interpolate_levels(noise: NoiseSchedule, t: Tensor) -> Tensor:
    """ᾱ at times between whole ones: σ is interpolated."""
    sigma = noise_to_signal(noise.abar())
    low = t.floor().long().clamp(max=len(sigma) - 1)
    high = (low + 1).clamp(max=len(sigma) - 1)
    between = sigma[low] + (t - low) * (sigma[high] - sigma[low])
    return 1 / (1 + between.square())


def karras_sigmas(largest: float, smallest: float, steps: int, rho: float = RHO) -> Tensor:
    """σ_i = (σ_max^{1/ρ} + i/(n−1) (σ_min^{1/ρ} − σ_max^{1/ρ}))^ρ"""
    ramp = torch.linspace(0, 1, steps, dtype=torch.float64)
    return (largest ** (1 / rho) + ramp * (smallest ** (1 / rho) - largest ** (1 / rho))) ** rho


def karras_grid(noise: NoiseSchedule, t: Tensor | None, steps: int, end: float, whole: bool) -> Grid:
    """Karras' levels between those of the ends of t (None: of the schedule), and the times nearest to them."""
    known = noise_to_signal(noise.abar())
    ends = known[[-1, 0]] if t is None else (1 / interpolate_levels(noise, t[[0, -1]]) - 1).sqrt()
    sigma = karras_sigmas(float(ends[0]), float(ends[1]), steps)
    logs = known.log()
    high = torch.searchsorted(logs, sigma.log()).clamp(1, len(logs) - 1)
    low = high - 1
    share = ((sigma.log() - logs[low]) / (logs[high] - logs[low])).clamp(0, 1)
    times = low + share
    times = (times.trunc() if noise.shape == "cosine" else times.round()) if whole else times
    return Grid(times, torch.cat([1 / (1 + sigma.square()), torch.tensor([end], dtype=torch.float64)]))
