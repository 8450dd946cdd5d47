"""Zipf's law as a reason for scaling laws: what is rare is learnt last.

    frequencies      f_k = k^−(1+a) / ζ(1+a)                k = 1, 2, 3, …
    a model that holds the N most frequent patterns misses Σ_{k>N} f_k = ζ(1+a, N+1) / ζ(1+a) ≈ N^−a / (a ζ(1+a))

So the missing mass is a power law in N with the exponent a. Words of English have an exponent 1 + a of about 1
(VOM 14.4.3.5): a near 0, a slow law.

Systems: scaling-explanations
"""

from __future__ import annotations

import math

from scipy.special import zeta

from descend.errors import Mistake


def frequency(k: int, a: float) -> float:
    """f_k of an endless Zipf distribution."""
    return float(k ** -(1 + a) / zeta(1 + a))


def tail_mass(patterns: float, a: float) -> float:
    """What a model that knows this many patterns misses."""
    if not a > 0:
        raise Mistake(f"a = {a:g}: frequencies k^-(1+a) have a finite sum only for a above 0")
    return float(zeta(1 + a, patterns + 1) / zeta(1 + a))


def tail_slope(patterns: float, a: float, times: float = 2.0) -> float:
    """−d log tail / d log N between N and `times` N: tends to a."""
    return -math.log(tail_mass(times * patterns, a) / tail_mass(patterns, a)) / math.log(times)
