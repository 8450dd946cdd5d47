"""The minimum along a line, by secant steps inside a bracket.

    φ(t) = f(x + t d).    Stop where  φ(t) ≤ φ(0) + c₁ t φ'(0)  and  |φ'(t)| ≤ c₂ |φ'(0)|     (strong Wolfe)

At least one secant step is taken. On a quadratic it lands on the exact minimum, which conjugate directions need.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

Along = Callable[[float], tuple[float, float]]


class Point(NamedTuple):
    """A place on the line: t, φ(t), φ'(t)."""

    t: float
    value: float
    slope: float


def line_minimum(
    phi: Along, value: float, slope: float, first: float, c1: float = 1e-4, c2: float = 0.1, most: int = 30
) -> Point:
    """From φ(0) = value, φ'(0) = slope < 0 and a first guess. The point returned was the last one evaluated."""
    start = low = best = Point(0.0, value, slope)
    high: Point | None = None
    slack = 1e-15 * abs(value)  # differences below this are rounding
    t = first
    for i in range(most):
        at = Point(t, *phi(t))
        falls = math.isfinite(at.value) and at.value <= value + c1 * t * slope + slack
        if falls and abs(at.slope) <= c2 * abs(slope) and (i or at.slope == 0):
            return at
        if falls and at.value <= best.value:
            best = at
        previous = low
        if not falls or at.slope > 0:
            high = at
        else:
            low = at
        t = propose(low, high, previous)
        if high and abs(high.t - low.t) <= 1e-12 * max(high.t, 1e-30):
            break
    if best.t and best.t != at.t:
        return Point(best.t, *phi(best.t))
    return best if best.t else start


def propose(low: Point, high: Point | None, previous: Point) -> float:
    """The zero of the slope by the secant, kept inside the bracket; without a bracket, at most ten times further."""
    a, b = (low, high) if high else (previous, low)
    bend = b.slope - a.slope
    t = a.t - a.slope * (b.t - a.t) / bend if bend > 0 and math.isfinite(b.value + b.slope) else math.nan
    if high is None:
        return min(max(t, 1.1 * low.t), 10 * low.t) if t > low.t else 10 * low.t
    margin = 1e-3 * (high.t - low.t)
    return t if low.t + margin < t < high.t - margin else (low.t + high.t) / 2
