"""Learning-rate schedules: the books' closed forms, and frozen values that a recipe holds.

    warmup   η_t = η_min + (η_0 − η_min) t / T_warm                     t ≤ T_warm
    cosine   η_t = η_min + (η_0 − η_min) (1 + cos(π t / T)) / 2         0 ≤ t ≤ T
    linear   η_t = η_0 + (η_min − η_0) t / T

A schedule is a pure function of the step, so a resumed run needs no state of it. Under gradient accumulation t counts
optimizer steps; MF-A.93 counts mini-batches and stretches the warmup by k, which is the same curve.

Systems: cosine-annealing, linear-warmup
"""

from __future__ import annotations

import math
from dataclasses import dataclass


def linear_warmup(t: float, warmup: float, start: float = 0.0, peak: float = 1.0) -> float:
    """η_min + (η_0 − η_min) t / T_warm, and η_0 from T_warm on."""
    return start + (peak - start) * min(t / warmup, 1.0) if warmup else peak


def cosine(t: float, total: float, peak: float = 1.0, floor: float = 0.0) -> float:
    """Half a cosine from the peak at t = 0 to the floor at t = T."""
    return floor + (peak - floor) * (1 + math.cos(math.pi * min(t / total, 1.0))) / 2


def linear(t: float, total: float, peak: float = 1.0, floor: float = 0.0) -> float:
    """A straight line from the peak at t = 0 to the floor at t = T."""
    return peak + (floor - peak) * min(t / total, 1.0)


@dataclass(frozen=True)
class Constant:
    """Full rate, after the warmup."""

    warmup: int = 0
    """Steps of linear warmup."""

    def __call__(self, step: int, steps: int) -> float:
        return linear_warmup(step + 1, self.warmup)


@dataclass(frozen=True)
class Cosine:
    """Warmup, then half a cosine down to the floor; continuous where they meet."""

    warmup: int = 0
    """Steps of linear warmup."""
    floor: float = 0.1
    """Last rate as a share of the first."""

    def __call__(self, step: int, steps: int) -> float:
        if step < self.warmup:
            return linear_warmup(step + 1, self.warmup)
        return cosine(step - self.warmup, max(steps - self.warmup, 1), floor=self.floor)


@dataclass(frozen=True)
class Linear:
    """Warmup, then a straight line down to the floor."""

    warmup: int = 0
    """Steps of linear warmup."""
    floor: float = 0.0
    """Last rate as a share of the first."""

    def __call__(self, step: int, steps: int) -> float:
        if step < self.warmup:
            return linear_warmup(step + 1, self.warmup)
        return linear(step - self.warmup, max(steps - self.warmup, 1), floor=self.floor)
