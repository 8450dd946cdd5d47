"""How sure a scaling law is of its own prediction.

    log L(x) = log a − α log x            Var[log L] = (1, −log x) Σ (1, −log x)ᵀ            Σ: covariance of (log a, α)
    delta method      L · exp(± t_ν √Var)                  of the law; with + σ² inside the root, of one more run
    bootstrap         quantiles of the laws of sweeps drawn again
    by hand           L at α − se, α, α + se, with N_c given: d log L = dα · ln(N_c / N)

Erratum: VOM 14.9.6 says that 12% of uncertainty in α becomes 20% and more in the loss two orders of magnitude away. By
its own formula ±0.01 becomes 100^0.01 − 1 = 4.7%, and the 1.37-1.50 around 1.43 that it prints are 4.6%; 20% takes 7.9
orders of magnitude.

Systems: scaling-prediction-intervals
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.stats import t as student

from descend.theory.scaling_fit import ScalingFit, interval
from descend.theory.scaling_laws import PowerLaw


def vary_exponent(law: PowerLaw, error: float, x: float) -> tuple[float, float, float]:
    """(low, middle, high): the loss at α − error, α and α + error, in order of size."""
    low, high = sorted(PowerLaw(law.scale, law.alpha + sign * error, law.floor)(x) for sign in (-1, 1))
    return low, law(x), high


def relative_error(error: float, ratio: float) -> float:
    """ratio^error − 1: what an error of the exponent makes of the loss, `ratio` times away from where it is known."""
    return math.expm1(error * math.log(ratio))


def orders_until(share: float, error: float) -> float:
    """Orders of magnitude after which an error of the exponent has become this share of the loss."""
    return math.log10(1 + share) / error


def by_delta(fit: ScalingFit, x: float, level: float = 0.95, run: bool = False) -> tuple[float, float]:
    """Interval of the law at x or, with `run`, of the loss that one more run will have there. For a law with a floor it
    is the interval of what is above the floor."""
    u = math.log(x)
    (aa, ab), (_, bb) = fit.covariance.tolist()
    variance = aa - 2 * u * ab + u * u * bb + (fit.spread**2 if run else 0.0)
    reach = math.exp(student.ppf((1 + level) / 2, max(1, fit.free)) * math.sqrt(max(0.0, variance)))
    floor, rest = fit.law.floor, fit.law.reducible(x)
    return floor + rest / reach, floor + rest * reach


def by_bootstrap(laws: Sequence[PowerLaw], x: float, level: float = 0.95) -> tuple[float, float]:
    """Interval of the law at x from laws of sweeps drawn again."""
    return interval([law(x) for law in laws], level)
