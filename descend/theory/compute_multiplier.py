"""From small runs to a large one, and what an innovation is worth in compute.

    small runs      train at 1%, 3% and 10% of the compute, fit in log-log, extrapolate to 100%
    multiplier      the compute that A needs for B's loss, over B's compute: (a_A / a_B)^(1/α) at equal slopes
    crossing        log C* = (log a_B − log a_A) / (α_B − α_A): beyond it the steeper curve leads
    equal slopes?   t = (α_A − α_B) / √(se_A² + se_B²), ν by Welch and Satterthwaite: an offset, or another exponent?
    compounding     independent gains multiply: 1.1 · 1.1 = 1.21
    a task          accuracy at the largest run + gain per ten times the compute · log10 of the ratio

VOM 14.8.2 claims 2 for FlashAttention and 4 for mixtures of experts in training, and that innovations shift the curve
but seldom tilt it. A smaller exponent than the neighbours' points at a bottleneck (14.7.2).

Systems: small-run-extrapolation
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.stats import t as student

from descend.errors import Mistake
from descend.theory.scaling_fit import ScalingFit, bootstrap, fit_power_law, interval
from descend.theory.scaling_laws import PowerLaw

SHARES = (0.01, 0.03, 0.10)
"""Of the target compute that VOM 14.7.1 trains with."""


def plan_runs(flops: float) -> list[float]:
    """The compute of the small runs."""
    return [share * flops for share in SHARES]


def predict_full_scale(
    compute: Sequence[float], losses: Sequence[float], target: float, level: float = 0.95
) -> tuple[float, float, float]:
    """(low, prediction, high) of the loss at the target compute."""
    fit = fit_power_law(compute, losses)
    low, high = interval([law(target) for law in bootstrap(fit, fit_power_law)], level)
    return low, fit.law(target), high


def multiply_compute(old: PowerLaw, new: PowerLaw, compute: float) -> float:
    """How much compute the old way needs for what the new way reaches with `compute`, over `compute`."""
    return old.invert(new(compute)) / compute


def offset_multiplier(old: float, new: float, alpha: float) -> float:
    """(a_A / a_B)^(1/α): the same for two curves a C^−α of one exponent, whatever the compute."""
    return (old / new) ** (1 / alpha)


def cross(one: PowerLaw, other: PowerLaw) -> float:
    """The compute at which two laws without floors have the same loss."""
    if one.alpha == other.alpha:
        raise Mistake("the two curves have the same exponent: they never cross")
    log_a, log_b = (law.alpha * math.log(law.scale) for law in (one, other))
    return math.exp((log_b - log_a) / (other.alpha - one.alpha))


def compare_slopes(one: ScalingFit, other: ScalingFit) -> tuple[float, float]:
    """(α_A − α_B, chance of so large a difference if the exponents are equal)."""
    errors = [fit.alpha_error**2 for fit in (one, other)]
    gap = one.law.alpha - other.law.alpha
    total = sum(errors)
    if not total > 0:
        return gap, 1.0 if gap == 0 else 0.0
    free = total**2 / sum(e**2 / max(1, fit.free) for e, fit in zip(errors, (one, other), strict=True))
    return gap, 2 * float(student.sf(abs(gap) / math.sqrt(total), free))


def find_bottleneck(fits: dict[str, ScalingFit], level: float = 0.05) -> str:
    """The variant whose exponent is surely smaller than every other's; "" if there is none."""
    least = min(fits, key=lambda name: fits[name].law.alpha)
    sure = all(compare_slopes(fits[least], fit)[1] < level for name, fit in fits.items() if name != least)
    return least if sure and len(fits) > 1 else ""


def compound(gains: Sequence[float]) -> float:
    """Π (1 + g) − 1: what independent gains make together."""
    return math.prod(1 + gain for gain in gains) - 1


def extrapolate_accuracy(accuracy: float, gain: float, compute: float, target: float) -> float:
    """VOM 14.7.2: a gain for every ten times the compute, never above 1."""
    return min(1.0, accuracy + gain * math.log10(target / compute))


def compute_for_accuracy(accuracy: float, gain: float, wanted: float) -> float:
    """How many times the compute lifts a task to this accuracy: 70% to 90% at 10% for each ten times takes 100."""
    if not gain > 0:
        raise Mistake(f"a gain of {gain:g} per ten times the compute reaches nothing; it must be above 0")
    return float(10 ** ((wanted - accuracy) / gain))
