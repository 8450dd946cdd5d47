"""Cheap checks while a run is training: at each evaluation, from the logged numbers alone, each finding once.

`Watcher` is what `fit` calls: it is given the training metrics since the last evaluation and the validation scores, and
returns what is to be said. Of every stretch between two evaluations it keeps a few means, so that it costs next to
nothing however long the run is.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

from descend.diagnosis.course import LOOP, read_course
from descend.diagnosis.curves import detect_high_rate, detect_no_progress, detect_overfitting
from descend.diagnosis.games import GAMES
from descend.diagnosis.inside import detect_growing_norms
from descend.diagnosis.signs import Finding, Signs

PIECES = 4  # means that are kept between two evaluations
MOST = 400  # means that are kept in all; when there are more, neighbours become one
CHECKS = (detect_high_rate, detect_growing_norms, detect_overfitting)
EARLY = 0.1  # share of the steps before which nothing is said: a warm-up may jump

Point = tuple[int, float]


class Watcher:
    """Remembers the losses of a run, and which findings were reported."""

    def __init__(self, recipe: dict[str, Any], lines: list[dict[str, Any]]):
        """`recipe` is the content of recipe.json, `lines` what a resumed run has logged before."""
        before = read_course(recipe, lines)
        self.name, self.values, self.steps = before.name, before.values, before.steps
        self.train: list[Point] = list(before.train)
        self.valid: list[Point] = list(before.valid)
        self.norms: list[Point] = list(before.norms)
        self.measured = {name: list(curve) for name, curve in before.measured.items()}
        self.players = {name: list(curve) for name, curve in before.players.items()}
        self.reported = {str(line.get("finding")) for line in lines if line.get("event") == "warning"}

    def __call__(self, step: int, seen: list[dict[str, float]], scores: dict[str, float]) -> list[dict[str, str]]:
        """What to say at this evaluation: {"finding", "said"}, the first of the new ones."""
        for name in {name for metrics in seen for name in metrics} - LOOP:
            if not name.startswith("loss_"):
                self.keep(self.measured.setdefault(name, []), name, step, seen)
        for name, points in self.players.items():
            self.keep(points, f"loss_{name}", step, seen)
        falls = "loss" in scores  # a game between players, or a reward, has no loss that ought to fall
        if falls:
            if not self.train and seen and "loss" in seen[0]:
                self.train.append((step - len(seen) + 1, seen[0]["loss"]))
            self.keep(self.train, "loss", step, seen)
            self.keep(self.norms, "grad_norm", step, seen)
            self.valid.append((step, scores["loss"]))
        if step < EARLY * self.steps:
            return []
        checks = (*(CHECKS if falls else ()), *GAMES)
        checks = (*checks, detect_no_progress) if falls and not self.reported else checks  # that needs no second word
        signs = self.signs()
        new = next((found for check in checks if (found := check(signs)) and found.name not in self.reported), None)
        if new is None:
            return []
        self.reported.add(new.name)
        return [{"finding": new.name, "said": format_finding(new)}]

    def signs(self) -> Signs:
        """All that is remembered."""
        return Signs(
            self.name,
            self.values,
            self.steps,
            tuple(self.train),
            tuple(self.valid),
            norms=tuple(self.norms),
            players={name: tuple(points) for name, points in self.players.items()},
            measured={name: tuple(points) for name, points in self.measured.items()},
        )

    def keep(self, points: list[Point], name: str, step: int, seen: list[dict[str, float]]) -> None:
        """Add the means of a metric since the last evaluation."""
        points[:] = thin(points + means(step, [metrics[name] for metrics in seen if name in metrics]))


def means(step: int, values: list[float]) -> list[Point]:
    """The values of the last steps, up to this one, as the means of a few pieces with the last step of each."""
    size = max(1, -(-len(values) // PIECES))
    first = step - len(values)
    return [(first + min(i + size, len(values)), fmean(values[i : i + size])) for i in range(0, len(values), size)]


def thin(points: list[Point]) -> list[Point]:
    """Not too many points: of a long list the first, then the means of two neighbours each."""
    if len(points) <= MOST:
        return points
    rest = points[1:] if len(points) % 2 else points[2:]
    return [points[0], *((b[0], (a[1] + b[1]) / 2) for a, b in zip(rest[::2], rest[1::2], strict=True))]


def format_finding(found: Finding) -> str:
    """One line for the display."""
    return f"{found.name}: {found.evidence}. Try {found.change}"
