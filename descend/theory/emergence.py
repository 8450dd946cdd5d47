"""Abilities against loss and scale: a sigmoid, and why a task of many steps seems to switch on.

    task accuracy      chance + (most − chance) · σ((knee − L) / width)
    k steps right      p^k             log p^k = k log p: where p rises smoothly, p^k stays near 0 and then jumps
    prediction         p of the easy task from small models, logit p = u + v log N; the hard task is right where
                       p^k = threshold, so at p = threshold^(1/k)

VOM 14.8.1 says only that accuracy is sigmoidal in the loss with a knee of the task's own; the form above is implied.
One and the same 10% of loss is worth 0% before the knee, 20% in the steep part and 1% when the task is saturated. VOM
14.5.3 lists approaches to predicting emergence and gives no method; the proxy with p^k is ours.

Systems: task-accuracy-sigmoid, composite-task-emergence
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit, logit

from descend.errors import Mistake


@dataclass(frozen=True)
class TaskCurve:
    """Accuracy as a function of the loss."""

    knee: float
    """The loss half-way between chance and the best."""
    width: float
    """How much loss it takes from a quarter of the way or so to three quarters: log 3 on either side of the knee."""
    chance: float = 0.0
    most: float = 1.0

    def __post_init__(self) -> None:
        if not self.width > 0:
            raise Mistake(f"a width of {self.width:g}: it must be above 0")
        if not 0 <= self.chance < self.most <= 1:
            raise Mistake(f"chance {self.chance:g} and best accuracy {self.most:g}: 0 ≤ chance < best ≤ 1")

    def __call__(self, loss: float) -> float:
        return self.chance + (self.most - self.chance) * float(expit((self.knee - loss) / self.width))

    def gain(self, loss: float, share: float) -> float:
        """What this share less of loss is worth."""
        return self((1 - share) * loss) - self(loss)

    def regime(self, loss: float) -> str:
        """Where the model stands: "below" within 5% of the way from chance, "saturated" within 5% of the best."""
        way = (self(loss) - self.chance) / (self.most - self.chance)
        return "below" if way < 0.05 else "saturated" if way > 0.95 else "steep"


def fit_task(losses: Sequence[float], accuracies: Sequence[float], chance: float = 0.0, most: float = 1.0) -> TaskCurve:
    """Knee and width by least squares; chance and the best accuracy are known of a task."""
    x, y = np.asarray(losses, dtype=np.float64), np.asarray(accuracies, dtype=np.float64)
    if len(x) < 3 or len(x) != len(y):
        raise Mistake(f"{len(x)} losses and {len(y)} accuracies: a task's curve needs at least 3 pairs")
    middle = float(x[np.argmin(np.abs(y - (chance + most) / 2))])
    start = np.array([middle, math.log((float(np.ptp(x)) or 1.0) / 4)])
    found = least_squares(
        lambda p: chance + (most - chance) * expit((p[0] - x) / np.exp(p[1])) - y, start, xtol=1e-14, ftol=1e-14
    )
    return TaskCurve(float(found.x[0]), math.exp(found.x[1]), chance, most)


def composite(step: float, steps: int) -> float:
    """p^k: all of k independent steps are right."""
    return step**steps


def log_composite(step: float, steps: int) -> float:
    """k log p: the smooth view of the same."""
    return steps * math.log(step)


def needed_step(whole: float, steps: int) -> float:
    """The accuracy of a step at which the whole reaches this accuracy: whole^(1/k)."""
    return float(whole ** (1 / steps))


def jump(sizes: Sequence[float], accuracies: Sequence[float], low: float = 0.1, high: float = 0.9) -> float:
    """Orders of magnitude of size that a curve takes from `low` to `high` (linear between the points); a small number
    is a sudden rise. Infinite where it does not get there."""
    x, y = (
        np.log10(np.asarray(sizes, dtype=np.float64)),
        np.maximum.accumulate(np.asarray(accuracies, dtype=np.float64)),
    )
    if y[0] > low or y[-1] < high:
        return math.inf
    first, last = (float(np.interp(level, y, x)) for level in (low, high))
    return last - first


@dataclass(frozen=True)
class StepCurve:
    """logit p = offset + slope · log N: the accuracy of one step against size."""

    offset: float
    slope: float

    def __call__(self, size: float) -> float:
        return float(expit(self.offset + self.slope * math.log(size)))

    def threshold(self, whole: float, steps: int) -> float:
        """The size at which a task of so many steps reaches this accuracy."""
        wanted = float(logit(needed_step(whole, steps)))
        return math.exp((wanted - self.offset) / self.slope)


def fit_steps(sizes: Sequence[float], accuracies: Sequence[float], steps: int = 1) -> StepCurve:
    """The curve of one step from the accuracies of a task of `steps` steps: a line through logit p^(1/k)."""
    p = np.clip(np.asarray(accuracies, dtype=np.float64), 0.0, 1.0) ** (1 / steps)
    inside = (p > 0) & (p < 1)
    x, y = np.log(np.asarray(sizes, dtype=np.float64))[inside], logit(p[inside])
    if len(x) < 2:
        raise Mistake("fewer than two sizes whose accuracy lies between 0 and 1: there is no curve to draw")
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    if not slope > 0:
        raise Mistake("the easy task does not get better with size: it predicts nothing of the hard one")
    return StepCurve(float(y.mean() - slope * x.mean()), slope)
