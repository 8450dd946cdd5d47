"""The cheap checks while a run is training: at each evaluation, from the logged numbers alone, each finding told once.

`Watcher` is what `fit` calls: it is given the training metrics since the last evaluation and the validation scores, and
returns what is to be said. Of every stretch between two evaluations it keeps a few means, so that it costs next to
nothing however long the run is.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

from descend.diagnosis.course import course
from descend.diagnosis.curves import no_progress, overfit, rate_too_high
from descend.diagnosis.inside import growing_norms
from descend.diagnosis.signs import Finding, Signs

PIECES = 4  # means that are kept between two evaluations
MOST = 400  # means that are kept in all; when there are more, neighbours become one
CHECKS = (rate_too_high, growing_norms, overfit)
EARLY = 0.1  # share of the steps before which nothing is said: a warm-up may jump

Point = tuple[int, float]


class Watcher:
    """Remembers the losses of a run, and which findings were told."""

    def __init__(self, recipe: dict[str, Any], lines: list[dict[str, Any]]):
        """`recipe` is the content of recipe.json, `lines` what a resumed run has logged before."""
        before = course(recipe, lines)
        self.name, self.values, self.steps = before.name, before.values, before.steps
        self.train: list[Point] = list(before.train)
        self.valid: list[Point] = list(before.valid)
        self.norms: list[Point] = list(before.norms)
        self.told = {str(line.get("finding")) for line in lines if line.get("event") == "warning"}

    def __call__(self, step: int, seen: list[dict[str, float]], scores: dict[str, float]) -> list[dict[str, str]]:
        """What to say at this evaluation: {"finding", "said"}, the first of the new ones."""
        if "loss" not in scores:
            return []
        if not self.train and seen and "loss" in seen[0]:
            self.train.append((step - len(seen) + 1, seen[0]["loss"]))
        self.train = thinned(self.train + means(step, [metrics["loss"] for metrics in seen if "loss" in metrics]))
        norms = means(step, [metrics["grad_norm"] for metrics in seen if "grad_norm" in metrics])
        self.norms = thinned(self.norms + norms)
        self.valid.append((step, scores["loss"]))
        if step < EARLY * self.steps:
            return []
        signs = Signs(self.name, self.values, self.steps, tuple(self.train), tuple(self.valid), norms=tuple(self.norms))
        checks = CHECKS if self.told else (*CHECKS, no_progress)  # that nothing moves needs no second word
        new = next((found for check in checks if (found := check(signs)) and found.name not in self.told), None)
        if new is None:
            return []
        self.told.add(new.name)
        return [{"finding": new.name, "said": said(new)}]


def means(step: int, values: list[float]) -> list[Point]:
    """The values of the last steps, up to this one, as the means of a few pieces with the last step of each."""
    size = max(1, -(-len(values) // PIECES))
    first = step - len(values)
    return [(first + min(i + size, len(values)), fmean(values[i : i + size])) for i in range(0, len(values), size)]


def thinned(points: list[Point]) -> list[Point]:
    """Not too many points: of a long list the first, then the means of two neighbours each."""
    if len(points) <= MOST:
        return points
    rest = points[1:] if len(points) % 2 else points[2:]
    return [points[0], *((b[0], (a[1] + b[1]) / 2) for a, b in zip(rest[::2], rest[1::2], strict=True))]


def said(found: Finding) -> str:
    """One line for the display."""
    return f"{found.name}: {found.evidence}. Try {found.change}"
