"""Spikes: a value far above those just before it, in a loss or in the norm of a gradient.

    m = median of the last W values        s = 1.4826 · median |x_i − m|        h = max x_i
    x_t is a spike where  x_t − m > max(10 s, 5 (h − m), floor)

s is the standard deviation where the noise is normal, and no outlier moves it; h − m is how far the noise itself went
within the window, whatever its tails. A curve that falls has no spikes, nor has one that rises slowly. Norms are
compared by their logarithm, with a factor of 2 as the floor; losses with a quarter of m.

The value that is remembered of a spike is the threshold: so a level that is new and stays is usual after a few values.

The entry (DLD 11.6) says to watch for spikes and leaves open what one is: this rule is ours.

Systems: training-monitoring
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median
from typing import NamedTuple

WINDOW = 50
LEAST = 30  # values before which nothing is usual
NORMAL = 1.482602218505602  # 1 / Φ⁻¹(3/4): from the median of deviations to the standard deviation
DEVIATIONS, REACH = 10.0, 5.0
SHARE, FACTOR = 0.25, 2.0  # floors: of a value, of a logarithm


class Spike(NamedTuple):
    """What was measured, and what was usual before it."""

    value: float
    usual: float


class Series:
    """The last values of one curve; `logarithm` compares factors instead of differences."""

    def __init__(self, logarithm: bool = False):
        self.logarithm = logarithm
        self.values: deque[float] = deque(maxlen=WINDOW)

    def observe(self, value: float) -> Spike | None:
        """One more value: whether it is a spike."""
        if self.logarithm and value <= 0:
            return None
        x, found = math.log(value) if self.logarithm else value, None
        if len(self.values) >= LEAST and x > max(self.values):  # no spike is below the highest
            m, limit = find_limit(self.values, math.log(FACTOR) if self.logarithm else 0.0)
            if x > limit:
                found, x = Spike(value, math.exp(m) if self.logarithm else m), limit
        self.values.append(x)
        return found


def find_limit(values: deque[float], floor: float = 0.0) -> tuple[float, float]:
    """The median, and the value above which one is a spike; without a floor a quarter of the median."""
    m = median(values)
    s = NORMAL * median(abs(x - m) for x in values)
    return m, m + max(DEVIATIONS * s, REACH * (max(values) - m), floor or SHARE * abs(m), 1e-12)


def find_spikes(values: list[float], logarithm: bool = False) -> list[int]:
    """The places of the spikes of a whole curve."""
    series = Series(logarithm)
    return [i for i, value in enumerate(values) if series.observe(value)]
