"""Learning-rate schedules: the books' closed forms, and frozen values that a recipe holds.

    constant      η_t = η_0
    linear        η_t = η_0 + (η_min − η_0) t / T
    polynomial    η_t = η_0 (1 + t)^−α            α = 1: Σ η_t = ∞, Σ η_t² < ∞ (torch's PolynomialLR is another curve)
    exponential   η_t = η_0 e^−λt
    step          η_t = η_0 γ^⌊t/S⌋               S in steps; times the steps of an epoch where a book counts epochs
    cosine        η_t = η_min + (η_0 − η_min) (1 + cos(π t / T)) / 2                          0 ≤ t ≤ T
    restarts      η_t = η_min + (η_0 γ^i − η_min) (1 + cos(π (t − t_i) / T_i)) / 2            t_i ≤ t < t_i + T_i
    warmup        η_t = η_min + (η_0 − η_min) t / T_warm           t ≤ T_warm, then any of these from its start
    Noam          η_t = d^−½ min(t^−½, t w^−3/2)                   t ≥ 1; peak (d w)^−½ at t = w
    plateau       η ← φ η when the watched score has not improved for this many evaluations

A schedule gives the factor on the optimizer's rate: η_0 is 1. It is a pure function of the step, so a resumed run needs
no state of it; only the plateau looks at scores, and its state is a value that the trainer keeps. Under gradient
accumulation t counts optimizer steps; MF-A.93 counts mini-batches and stretches the warmup by k, the same curve.
DLN names linear, power-law and exponential decay without formulas; the forms are MF's. Factor and patience of the
plateau are not given in MF 28.3; the score there is mAP, larger is better (`--watch "max map"`).

Systems: cosine-annealing, linear-warmup, elementary-decay-schedules, step-decay, cosine-warm-restarts,
    inverse-sqrt-warmup, plateau-decay-on-map
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from descend.errors import Mistake
from descend.ranges import Between, Count, Fraction, Positive, PositiveShare, Share, Whole, Width, check


def linear_warmup(t: float, warmup: float, start: float = 0.0, peak: float = 1.0) -> float:
    """η_min + (η_0 − η_min) t / T_warm, and η_0 from T_warm on."""
    return start + (peak - start) * min(t / warmup, 1.0) if warmup else peak


def linear(t: float, total: float, peak: float = 1.0, floor: float = 0.0) -> float:
    """A straight line from the peak at t = 0 to the floor at t = T."""
    return peak + (floor - peak) * min(t / total, 1.0)


def polynomial(t: float, alpha: float, peak: float = 1.0) -> float:
    """η_0 (1 + t)^−α"""
    return float(peak * (1 + t) ** -alpha)


def exponential(t: float, decay: float, peak: float = 1.0) -> float:
    """η_0 e^−λt"""
    return peak * math.exp(-decay * t)


def step_decay(t: float, period: float, gamma: float, peak: float = 1.0) -> float:
    """η_0 γ^⌊t/S⌋"""
    return float(peak * gamma ** (t // period))


def cosine(t: float, total: float, peak: float = 1.0, floor: float = 0.0) -> float:
    """Half a cosine from the peak at t = 0 to the floor at t = T."""
    return floor + (peak - floor) * (1 + math.cos(math.pi * min(t / total, 1.0))) / 2


def warm_restarts(t: float, periods: Sequence[float], gamma: float, peak: float = 1.0, floor: float = 0.0) -> float:
    """A cosine in each period, from the peak times γ^i; the last period is repeated forever."""
    start, i = 0.0, 0
    while i < len(periods) - 1 and t >= start + periods[i]:
        start, i = start + periods[i], i + 1
    more = (t - start) // periods[-1] if i == len(periods) - 1 else 0
    since, top = t - start - more * periods[-1], peak * gamma ** (i + more)
    return cosine(since, periods[i], max(top, floor), floor)


def growing_periods(first: int, times: int, restarts: int) -> tuple[int, ...]:
    """T_i = T_0 · times^i: the periods of a schedule with this many restarts."""
    return tuple(first * times**i for i in range(restarts + 1))


def noam(t: float, width: int, warmup: int) -> float:
    """d^−½ min(t^−½, t w^−3/2), for t ≥ 1."""
    return float(width**-0.5 * min(t**-0.5, t * warmup**-1.5))


def torch_scheduler(
    optimizer: torch.optim.Optimizer, schedule: Callable[[int, int], float], steps: int
) -> torch.optim.lr_scheduler.LambdaLR:
    """The schedule for a loop of one's own: call `.step()` after each of the optimizer's."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: schedule(step, steps))


def warm_up(step: int, steps: int, warmup: int, decay: Callable[[int, int], float]) -> float:
    """A linear rise of `warmup` steps to where the decay starts, then the decay over the steps that are left."""
    left = max(steps - warmup, 1)
    if step < warmup:
        return linear_warmup(step + 1, warmup, peak=decay(0, left))
    return decay(step - warmup, left)


@dataclass(frozen=True)
class Constant:
    """Full rate, after the warmup."""

    warmup: Whole = 0
    """Steps of linear warmup."""

    def __call__(self, step: int, steps: int) -> float:
        return linear_warmup(step + 1, self.warmup)


@dataclass(frozen=True)
class Cosine:
    """Warmup, then half a cosine down to the floor; continuous where they meet."""

    warmup: Whole = 0
    """Steps of linear warmup."""
    floor: Share = 0.1
    """Last rate as a share of the first."""

    def __call__(self, step: int, steps: int) -> float:
        return warm_up(step, steps, self.warmup, lambda t, total: cosine(t, total, floor=self.floor))


@dataclass(frozen=True)
class Linear:
    """Warmup, then a straight line down to the floor."""

    warmup: Whole = 0
    """Steps of linear warmup."""
    floor: Share = 0.0
    """Last rate as a share of the first."""

    def __call__(self, step: int, steps: int) -> float:
        return warm_up(step, steps, self.warmup, lambda t, total: linear(t, total, floor=self.floor))


@dataclass(frozen=True)
class Polynomial:
    """(1 + t)^−α: the decay of stochastic approximation."""

    alpha: PositiveShare = 0.5
    """Power, above 0 and at most 1."""

    def __post_init__(self) -> None:
        check(self, "schedule")

    def __call__(self, step: int, steps: int) -> float:
        return polynomial(step, self.alpha)


@dataclass(frozen=True)
class Exponential:
    """e^−λt: every step by the same ratio."""

    decay: Positive = 1e-3
    """λ, for one step."""

    def __post_init__(self) -> None:
        check(self, "schedule")

    def __call__(self, step: int, steps: int) -> float:
        return exponential(step, self.decay)


@dataclass(frozen=True)
class Step:
    """Multiplied by γ after every period."""

    period: Count = 1000
    """Steps between two cuts."""
    gamma: Between = 0.1
    """What a cut multiplies with."""

    def __post_init__(self) -> None:
        check(self, "schedule")

    def __call__(self, step: int, steps: int) -> float:
        return step_decay(step, self.period, self.gamma)


@dataclass(frozen=True)
class WarmRestarts:
    """A cosine in each period, each from a lower peak."""

    periods: tuple[Count, ...] = (1000,)
    """Steps of each period; the last is repeated."""
    gamma: PositiveShare = 1.0
    """What each restart multiplies the peak with."""
    floor: Fraction = 0.0
    """Lowest rate as a share of the first."""

    def __post_init__(self) -> None:
        check(self, "schedule")
        if not self.periods:
            raise Mistake("--schedule.periods: give one or more")
        lowest = self.gamma ** (len(self.periods) - 1)
        if not self.floor < lowest:
            raise Mistake(f"--schedule.floor {self.floor}: must be below the last period's peak {lowest:.3g}")

    def __call__(self, step: int, steps: int) -> float:
        return warm_restarts(step, self.periods, self.gamma, floor=self.floor)


@dataclass(frozen=True)
class Noam:
    """Inverse square root after a linear warmup. The factor is the rate itself: give the optimizer lr = 1."""

    width: Width = 512
    """d of the model."""
    warmup: Count = 4000
    """Step of the peak."""

    def __post_init__(self) -> None:
        check(self, "schedule")

    def __call__(self, step: int, steps: int) -> float:
        return noam(step + 1, self.width, self.warmup)


@dataclass(frozen=True)
class Warmup:
    """A linear warmup before any other schedule."""

    warmup: Whole = 100
    """Steps of linear warmup."""
    around: Any = field(default_factory=Constant)

    def __post_init__(self) -> None:
        check(self, "schedule")
        if isinstance(self.around, Plateau):
            raise Mistake("Plateau must be the outermost schedule: Plateau(around=Warmup(...))")

    def __call__(self, step: int, steps: int) -> float:
        return warm_up(step, steps, self.warmup, self.around)


@dataclass(frozen=True)
class Watch:
    """What a plateau has seen: the best score, the evaluations since then or since the last cut, and the factor now."""

    best: float | None = None
    stale: int = 0
    factor: float = 1.0


@dataclass(frozen=True)
class Plateau:
    """Any schedule, lowered each time that the watched score stops improving."""

    factor: Between = 0.1
    """What a cut multiplies with."""
    patience: Count = 3
    """Evaluations without improvement before a cut (torch counts one less)."""
    floor: Fraction = 0.0
    """Lowest product of the cuts."""
    around: Any = field(default_factory=Constant)

    def __post_init__(self) -> None:
        check(self, "schedule")
        if isinstance(self.around, Plateau):
            raise Mistake("a Plateau cannot contain another Plateau: give only one")

    def __call__(self, step: int, steps: int) -> float:
        return float(self.around(step, steps))

    def observe(self, watch: Watch, score: float, higher: bool, margin: float = 0.0) -> Watch:
        """The state after one more evaluation; a gain of the margin or less, and NaN, is no improvement."""
        gain = math.inf if watch.best is None else score - watch.best if higher else watch.best - score
        if gain > margin and not math.isnan(score):
            return Watch(score, 0, watch.factor)
        if watch.stale + 1 < self.patience:
            return Watch(watch.best, watch.stale + 1, watch.factor)
        return Watch(watch.best, 0, max(watch.factor * self.factor, self.floor))
