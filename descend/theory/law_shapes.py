"""A power law against a line and an exponential.

    power         y = a x^b            log y = log a + b log x        straight in log-log; slope b; no scale of its own
    line          y = a x              log y = log a + log x          the power law with b = 1
    exponential   y = a b^x            log y = log a + x log b        straight in log y; e^(−x / x₀) has the scale x₀

Scale-free: f(c x) / f(x) is c^b at every x for a power law, and for no exponential.

Which of them made some data: each is fitted by least squares of log y, and Akaike's criterion with its correction for
few points, n log(RSS / n) + 2 k n / (n − k − 1), charges for the k numbers that were fitted.

Errata of VOM 14.4.2. The table of L = 10 N^−0.1 for N = 1e6..1e10 prints 5.01, 3.98, 3.16, 2.51, 2.00, which are the
losses at N = 1e3..1e7; right are 2.51, 2.00, 1.58, 1.26, 1.00. The steps 10 to 20 and 100 to 110 are equal in absolute
terms, not in relative ones (100% and 10%). From x = 1e3 on the printed losses are the law's.

Systems: power-law-versus-exponential
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from descend.errors import Mistake

Array = NDArray[np.float64]


def power(x: float, a: float, b: float) -> float:
    """a x^b."""
    return float(a * x**b)


def exponential(x: float, a: float, b: float) -> float:
    """a b^x."""
    return float(a * b**x)


def decay(x: float, scale: float) -> float:
    """e^(−x / x₀)."""
    return math.exp(-x / scale)


def ratio(f: Callable[[float], float], x: float, times: float) -> float:
    """f(c x) / f(x)."""
    return f(times * x) / f(x)


def compare_steps(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The absolute and the relative increase of each pair."""
    return [b - a for a, b in pairs], [(b - a) / a for a, b in pairs]


@dataclass(frozen=True)
class Shape:
    """A fitted form: y = a x^b, a x, or a b^x."""

    name: str
    a: float
    b: float
    rss: float
    """Of log y."""
    criterion: float
    """AICc; the least wins."""

    def __call__(self, x: float) -> float:
        return exponential(x, self.a, self.b) if self.name == "exponential" else power(x, self.a, self.b)


def fit_shapes(x: Sequence[float], y: Sequence[float]) -> list[Shape]:
    """All three forms, the best first."""
    u, v = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(u) < 5 or len(u) != len(v):
        raise Mistake(f"{len(u)} points for three forms: give at least 5 of x and as many of y")
    if not ((u > 0).all() and (v > 0).all()):
        raise Mistake("a power law knows no values at or below 0; shift or leave out such points")
    log = np.log(v)
    size, slope = fit_straight(np.log(u), log)
    start, rate = fit_straight(u, log)
    line = float((log - np.log(u)).mean())
    return sorted(
        (
            judge("power", math.exp(size), slope, log - size - slope * np.log(u), 2),
            judge("line", math.exp(line), 1.0, log - line - np.log(u), 1),
            judge("exponential", math.exp(start), math.exp(rate), log - start - rate * u, 2),
        ),
        key=lambda shape: shape.criterion,
    )


def fit_straight(u: Array, v: Array) -> tuple[float, float]:
    """(intercept, slope) by least squares."""
    slope = float(((u - u.mean()) * (v - v.mean())).sum() / ((u - u.mean()) ** 2).sum())
    return float(v.mean() - slope * u.mean()), slope


def growth_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The b of cost ∝ n^b, by least squares in log-log: to compare a measured cost with a claimed O(n^b)."""
    return fit_straight(np.log(np.asarray(sizes, dtype=np.float64)), np.log(np.asarray(costs, dtype=np.float64)))[1]


def judge(name: str, a: float, b: float, residuals: Array, fitted: int) -> Shape:
    """AICc of one form; the noise is a fitted number, too."""
    n, k = len(residuals), fitted + 1
    rss = float((residuals**2).sum())
    return Shape(name, a, b, rss, n * math.log(max(rss, 1e-300) / n) + 2 * k * n / (n - k - 1))
