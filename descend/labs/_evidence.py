"""What counts as evidence: predictions written before the measurement, and how they are judged over seeds.

    AtLeast("gain", 2.0, "…")     the mean of the effect "gain" over seeds is 2.0 or more
    low, high                     between them lie 95% of the means of resamples of the seeds (bootstrap)
    supported, refuted            the whole interval is on the right, or on the wrong side of the threshold
    open                          it crosses the threshold, a number is missing, the budget was too small, or seeds < 3

With three seeds the interval goes from the lowest to the highest, so that every seed has to agree; with five, one seed
just beyond the threshold may be outweighed. It describes these seeds: with so few, it covers the mean of all possible
seeds less often than 95%.

A lab is supported if all its predictions are, refuted if one is, else open. Its controls are what has to hold for the
measurement to say anything: while one does not, the lab is open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

SEEDS = 3  # a verdict needs as many
EXACT = 5  # up to so many values every resample is taken, above it DRAWS of them
DRAWS = 4000


class NeedsMore(Exception):
    """Raised by a measurement that cannot be made with its budget: how many seconds it would need."""

    def __init__(self, seconds: float):
        super().__init__(f"needs about {seconds:.3g} s a seed")
        self.seconds = seconds


@dataclass(frozen=True)
class Prediction:
    """A named effect, and on which side of which number it has to be."""

    effect: str

    @property
    def note(self) -> str:
        """Why it is expected, and what would refute it."""
        return str(getattr(self, "text", ""))

    def holds(self, value: float) -> bool:
        raise NotImplementedError

    def fails(self, value: float) -> bool:
        """Whether it is refuted there: where it does not hold, unless the prediction leaves room in between."""
        raise NotImplementedError

    def bounds(self) -> tuple[float, ...]:
        """Its thresholds."""
        raise NotImplementedError

    def spell(self) -> str:
        """What is predicted, in a few characters."""
        raise NotImplementedError


@dataclass(frozen=True)
class AtLeast(Prediction):
    """effect ≥ threshold. Refuted below it; with `refuted`, only at that number or below, and open in between."""

    threshold: float
    text: str = ""
    refuted: float | None = None

    def holds(self, value: float) -> bool:
        return value >= self.threshold

    def fails(self, value: float) -> bool:
        return value <= self.refuted if self.refuted is not None else not self.holds(value)

    def bounds(self) -> tuple[float, ...]:
        return (self.threshold,)

    def spell(self) -> str:
        return f"≥ {self.threshold:.6g}"


@dataclass(frozen=True)
class Above(AtLeast):
    """effect > threshold: exactly the threshold is not enough."""

    def holds(self, value: float) -> bool:
        return value > self.threshold

    def spell(self) -> str:
        return f"> {self.threshold:.6g}"


@dataclass(frozen=True)
class AtMost(Prediction):
    """effect ≤ threshold. Refuted above it; with `refuted`, only at that number or above, and open in between."""

    threshold: float
    text: str = ""
    refuted: float | None = None

    def holds(self, value: float) -> bool:
        return value <= self.threshold

    def fails(self, value: float) -> bool:
        return value >= self.refuted if self.refuted is not None else not self.holds(value)

    def bounds(self) -> tuple[float, ...]:
        return (self.threshold,)

    def spell(self) -> str:
        return f"≤ {self.threshold:.6g}"


@dataclass(frozen=True)
class Below(AtMost):
    """effect < threshold: exactly the threshold is not enough."""

    def holds(self, value: float) -> bool:
        return value < self.threshold

    def spell(self) -> str:
        return f"< {self.threshold:.6g}"


@dataclass(frozen=True)
class Within(Prediction):
    """low ≤ effect ≤ high."""

    low: float
    high: float
    text: str = ""

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def fails(self, value: float) -> bool:
        return not self.holds(value)

    def bounds(self) -> tuple[float, ...]:
        return (self.low, self.high)

    def spell(self) -> str:
        return f"{self.low:.6g} .. {self.high:.6g}"


def bootstrap_interval(values: Sequence[float], level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Between which two numbers `level` of the means of resamples lie; NaN where a value is not finite."""
    x = np.asarray(values, dtype=float)
    if not len(x) or not np.isfinite(x).all():
        return math.nan, math.nan
    if len(x) <= EXACT:
        resamples = np.array(list(product(x, repeat=len(x))))
    else:
        resamples = np.random.default_rng(seed).choice(x, (DRAWS, len(x)))
    means = resamples.mean(1).clip(x.min(), x.max())
    low = np.quantile(means, (1 - level) / 2, method="lower")
    high = np.quantile(means, (1 + level) / 2, method="higher")
    return float(low), float(high)


@dataclass(frozen=True)
class Judged:
    """A prediction beside what was measured: a value for each seed, their mean and its interval."""

    prediction: Prediction
    values: tuple[float, ...]
    mean: float
    interval: tuple[float, float]
    held: int
    verdict: str

    def count(self) -> str:
        """ "4 of 5 seeds"."""
        return f"{self.held} of {len(self.values)} seed{'s' if len(self.values) != 1 else ''}"


def judge(prediction: Prediction, values: Sequence[float], least: int = SEEDS) -> str:
    """The verdict on one prediction from the values of an effect, one for each seed."""
    low, high = bootstrap_interval(values)
    if len(values) < least or math.isnan(low):
        return "open"
    if isinstance(prediction, Within) and low < prediction.low and high > prediction.high:
        return "open"
    if prediction.holds(low) and prediction.holds(high):
        return "supported"
    return "refuted" if prediction.fails(low) and prediction.fails(high) else "open"


def judge_effects(
    predictions: Sequence[Prediction], effects: Sequence[Mapping[str, float | None]], least: int = SEEDS
) -> list[Judged]:
    """Every prediction judged by the effects of each seed; None counts as not measured."""
    judged = []
    for prediction in predictions:
        values = tuple(read_effect(found, prediction.effect) for found in effects)
        finite = all(map(math.isfinite, values)) and values
        mean = math.fsum(values) / len(values) if finite else math.nan
        held = sum(prediction.holds(value) for value in values)
        judged.append(
            Judged(prediction, values, mean, bootstrap_interval(values), held, judge(prediction, values, least))
        )
    return judged


def read_effect(effects: Mapping[str, float | None], name: str) -> float:
    value = effects[name]
    return math.nan if value is None else float(value)


def conclude(judged: Sequence[Judged], controls: Sequence[Judged] = ()) -> str:
    """The verdict on a lab: supported by all predictions, refuted by one; open while a control does not hold."""
    verdicts = [one.verdict for one in judged]
    if not verdicts or any(control.verdict != "supported" for control in controls):
        return "open"
    if all(verdict == "supported" for verdict in verdicts):
        return "supported"
    return "refuted" if "refuted" in verdicts else "open"


@dataclass(frozen=True)
class Evidence:
    """What the findings of a lab on several seeds come to."""

    judged: list[Judged]
    controls: list[Judged]
    printed: list[Judged]
    seeds: int
    needs: float
    verdict: str
    printed_verdict: str
    """The verdict on the form that the book prints, where that has an erratum; else empty."""


def weigh(lab: Any, effects: Sequence[Mapping[str, float | None]], needs: float = 0.0, least: int = SEEDS) -> Evidence:
    """All predictions of a lab, judged by the effects of each seed; open where it needs more seconds than it had."""
    printed_form = getattr(lab, "PRINTED_PREDICTIONS", ())
    judged, controls, printed = (
        judge_effects(predictions, effects, least)
        for predictions in (lab.PREDICTIONS, getattr(lab, "CONTROLS", ()), printed_form)
    )
    said, printed_said = (
        "open" if needs > 0 or len(effects) < least else conclude(found, controls) for found in (judged, printed)
    )
    return Evidence(judged, controls, printed, len(effects), needs, said, printed_said if printed_form else "")


def judge_seed(lab: Any, numbers: dict[str, Any]) -> str:
    """What the numbers of one seed say by themselves: that every prediction holds there, or not; open: cannot tell."""
    return weigh(lab, [find_effects(lab, numbers)], find_needs(lab, numbers), least=1).verdict


def find_effects(lab: Any, numbers: dict[str, Any]) -> dict[str, float | None]:
    """The effects of a seed; none of them was measured where the budget was too small."""
    if find_needs(lab, numbers) > 0:
        return {prediction.effect: None for prediction in list_predictions(lab)}
    found: dict[str, float] = lab.effects(numbers)
    return {prediction.effect: float(found[prediction.effect]) for prediction in list_predictions(lab)}


def list_predictions(lab: Any) -> list[Prediction]:
    """Its predictions, its controls, and the predictions of the printed form."""
    return [one for part in ("PREDICTIONS", "CONTROLS", "PRINTED_PREDICTIONS") for one in getattr(lab, part, ())]


def find_needs(lab: Any, numbers: dict[str, Any]) -> float:
    """How many seconds a seed would have needed where the budget was too small, else 0."""
    asked: Callable[[dict[str, Any]], float] | None = getattr(lab, "needs", None)
    return float(asked(numbers)) if asked is not None else 0.0
