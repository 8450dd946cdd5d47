"""Noise schedules: how much of an image is left after t of T steps of noise.

    α_t = 1 − β_t,   ᾱ_t = ∏_{s ≤ t} α_s,   ᾱ_0 = 1,   signal-to-noise ratio ᾱ_t / (1 − ᾱ_t)

    linear           β_t from `start` to `end` in equal steps (DDPM: 1e-4 to 0.02)
    scaled-linear    √β_t in equal steps (latent diffusion: 0.00085 to 0.012)
    cosine           ᾱ_t = f(t) / f(0),   f(t) = cos²((t/T + s) / (1 + s) · π/2),   s = 0.008,   β_t ≤ 0.999
    sigmoid          β_t along a logistic curve over −6..6 from `start` to `end`

The books count t = 1..T; arrays, networks and diffusers count 0..T−1. Entry i here is the books' t = i + 1. DLN-C.122
names the first and the third without a formula; these are the papers' forms. All numbers are float64.

A schedule with `zero_terminal` is shifted and stretched so that nothing of the image is left at T (ᾱ_T = 0): √ᾱ goes
to 0 at the end and keeps its first value. Then ε says nothing about x_0 at T, so a network must not predict it there.

Systems: noise-schedules
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch
from torch import Tensor

from descend.ranges import Between, Count, check

LARGEST = 0.999  # of β in a cosine schedule
S = 0.008


@dataclass(frozen=True)
class NoiseSchedule:
    """The schedule of β_t, and what follows from it."""

    shape: Literal["linear", "scaled-linear", "cosine", "sigmoid"] = "linear"
    steps: Count = 1000
    """T, the steps of noise."""
    start: Between = 1e-4
    """The first β; not used by cosine."""
    end: Between = 0.02
    """The last β; not used by cosine."""
    zero_terminal: bool = False
    """Stretched until nothing of the image is left in the end; needs --plan.predicts v or x0."""

    def __post_init__(self) -> None:
        check(self)

    def betas(self) -> Tensor:
        """β (T)"""
        return _betas(self)

    def abar(self) -> Tensor:
        """ᾱ (T)"""
        return _abar(self)

    def abar_before(self) -> Tensor:
        """ᾱ_{t−1} (T): 1 at first."""
        return torch.cat([torch.ones(1, dtype=torch.float64), self.abar()[:-1]])

    def at(self, t: Tensor, x: Tensor) -> Tensor:
        """ᾱ for t (b) in 0..T−1, shaped and typed to multiply x (b, ..)."""
        return spread(self.abar().to(t.device)[t.long()], x)


def spread(values: Tensor, x: Tensor) -> Tensor:
    """values (b) as (b, 1, ..) in the type of x (b, ..)."""
    return values.to(x).reshape(-1, *(1,) * (x.dim() - 1))


@cache
def _betas(schedule: NoiseSchedule) -> Tensor:
    made = {
        "linear": linear_betas,
        "scaled-linear": scaled_linear_betas,
        "sigmoid": sigmoid_betas,
        "cosine": lambda steps, _start, _end: cosine_betas(steps),
    }[schedule.shape](schedule.steps, schedule.start, schedule.end)
    return remove_terminal_signal(made) if schedule.zero_terminal else made


@cache
def _abar(schedule: NoiseSchedule) -> Tensor:
    return (1 - _betas(schedule)).cumprod(0)


def linear_betas(steps: int, start: float = 1e-4, end: float = 0.02) -> Tensor:
    """β_1 .. β_T in equal steps."""
    return torch.linspace(start, end, steps, dtype=torch.float64)


def scaled_linear_betas(steps: int, start: float = 0.00085, end: float = 0.012) -> Tensor:
    """√β in equal steps."""
    return torch.linspace(math.sqrt(start), math.sqrt(end), steps, dtype=torch.float64).square()


def sigmoid_betas(steps: int, start: float = 1e-4, end: float = 0.02) -> Tensor:
    """β along a logistic curve."""
    return torch.linspace(-6, 6, steps, dtype=torch.float64).sigmoid() * (end - start) + start


def cosine_betas(steps: int, s: float = S, largest: float = LARGEST) -> Tensor:
    """β_t = 1 − f(t) / f(t−1), at most `largest`."""
    t = torch.arange(steps + 1, dtype=torch.float64) / steps
    f = ((t + s) / (1 + s) * math.pi / 2).cos().square()
    return (1 - f[1:] / f[:-1]).clamp(max=largest)


def remove_terminal_signal(betas: Tensor) -> Tensor:
    """β of the schedule whose √ᾱ is shifted to end at 0 and stretched to begin where it began."""
    root = (1 - betas).cumprod(0).sqrt()
    root = (root - root[-1]) * root[0] / (root[0] - root[-1])
    abar = root.square()
    return 1 - torch.cat([abar[:1], abar[1:] / abar[:-1]])


def signal_to_noise(abar: Tensor) -> Tensor:
    """ᾱ / (1 − ᾱ)"""
    return abar / (1 - abar)
