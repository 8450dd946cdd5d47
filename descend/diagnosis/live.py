"""Cheap checks while a run is training: at each evaluation, from the logged numbers alone, each finding once.

`Watcher` is what `fit` asks: it sees the metrics of every step, and at an evaluation it returns what is to be said. Of
every stretch between two evaluations it keeps a few means, so that it costs next to nothing however long the run is.
What it remembers goes into the checkpoints: a resumed run says what the one that was never stopped would have said.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from descend.diagnosis.course import LOOP, read_course
from descend.diagnosis.curves import detect_high_rate, detect_no_progress, detect_overfitting
from descend.diagnosis.energies import ENERGIES
from descend.diagnosis.games import GAMES
from descend.diagnosis.generators import GENERATORS
from descend.diagnosis.inside import detect_growing_norms
from descend.diagnosis.latent import LATENT
from descend.diagnosis.signs import Finding, Signs

PIECES = 4  # means that are kept between two evaluations
MOST = 400  # means that are kept in all; when there are more, neighbours become one
CHECKS = (detect_high_rate, detect_growing_norms, detect_overfitting)
EARLY = 0.1  # share of the steps before which nothing is said: a warm-up may jump

Point = tuple[int, float]
Piece = tuple[int, float, int]
"""Last step, sum and number of some values."""


class Watcher:
    """Remembers the losses of a run, and which findings were reported."""

    def __init__(self, recipe: dict[str, Any]):
        """`recipe` is the content of recipe.json."""
        self.recipe = recipe
        self.seen: list[tuple[int, dict[str, float]]] = []  # the last steps
        self.pieces: dict[str, list[Piece]] = {}  # what came before them since the last evaluation
        self.first: Point | None = None  # step and loss that the stretch began with
        self.begin(read_course(recipe, []))
        self.size = max(1, -(-int(self.values.get("eval_every") or 100) // PIECES))
        self.reported: set[str] = set()

    def begin(self, before: Signs) -> None:
        """With the curves that there are."""
        self.name, self.values, self.steps = before.name, before.values, before.steps
        self.train: list[Point] = list(before.train)
        self.valid: list[Point] = list(before.valid)
        self.norms: list[Point] = list(before.norms)
        self.measured = {name: list(curve) for name, curve in before.measured.items()}
        self.players = {name: list(curve) for name, curve in before.players.items()}
        self.judged = {name: list(curve) for name, curve in before.judged.items()}

    def observe(self, step: int, metrics: dict[str, float]) -> None:
        """One more step of the stretch."""
        self.seen.append((step, metrics))
        if len(self.seen) == self.size:
            self.gather()

    def gather(self) -> None:
        """Add the steps seen last to the pieces, value by value: the sums do not depend on when this is done."""
        for step, metrics in self.seen:
            if self.first is None and "loss" in metrics:
                self.first = step, metrics["loss"]
        for name in dict.fromkeys(name for _, metrics in self.seen for name in metrics):
            pieces = self.pieces.setdefault(name, [])
            last, total, count = pieces.pop() if pieces else (0, 0.0, 0)
            for step, metrics in self.seen:
                if name in metrics:
                    if count == self.size:
                        pieces.append((last, total, count))
                        total, count = 0.0, 0
                    last, total, count = step, total + metrics[name], count + 1
            pieces.append((last, total, count))
        self.seen = []

    def __call__(self, step: int, scores: dict[str, float]) -> list[dict[str, str]]:
        """What to say at this evaluation: {"finding", "said"}, the first of the new ones."""
        self.gather()
        for name in self.pieces.keys() - LOOP:
            if not name.startswith("loss_"):
                self.keep(self.measured.setdefault(name, []), name)
        for name, points in self.players.items():
            self.keep(points, f"loss_{name}")
        for name, score in scores.items():
            self.judged.setdefault(name, []).append((step, score))
        falls = "loss" in scores  # a game between players, or a reward, has no loss that ought to fall
        if falls:
            if not self.train and self.first:
                self.train.append(self.first)
            self.keep(self.train, "loss")
            self.keep(self.norms, "grad_norm")
            self.valid.append((step, scores["loss"]))
        self.pieces, self.first = {}, None
        if step < EARLY * self.steps:
            return []
        checks = (*(CHECKS if falls else ()), *GAMES, *GENERATORS, *LATENT, *ENERGIES)
        checks = (*checks, detect_no_progress) if falls and not self.reported else checks  # that needs no second word
        signs = self.signs()
        new = next((found for check in checks if (found := check(signs)) and found.name not in self.reported), None)
        if new is None:
            return []
        self.reported.add(new.name)
        return [{"finding": new.name, "said": format_finding(new)}]

    def state_dict(self) -> dict[str, Any]:
        """All that is remembered, as a checkpoint holds it."""
        self.gather()
        curves = {"train": self.train, "valid": self.valid, "norms": self.norms}
        curves |= {f"measured {name}": points for name, points in self.measured.items()}
        curves |= {f"player {name}": points for name, points in self.players.items()}
        curves |= {f"judged {name}": points for name, points in self.judged.items()}
        return {
            "curves": {name: np.array(points, dtype=np.float64) for name, points in curves.items() if points},
            "pieces": self.pieces,
            "first": self.first,
            "reported": sorted(self.reported),
        }

    def restore(self, state: dict[str, Any] | None, lines: list[dict[str, Any]]) -> None:
        """From a checkpoint; from what was logged until then where an earlier release wrote it."""
        if state is None:
            self.begin(read_course(self.recipe, lines))
            self.reported = {str(line.get("finding")) for line in lines if line.get("event") == "warning"}
            return
        curves = {
            name: [(int(step), value) for step, value in points.tolist()] for name, points in state["curves"].items()
        }
        self.train, self.valid, self.norms = (curves.get(name, []) for name in ("train", "valid", "norms"))
        for kind, kept in (("measured ", self.measured), ("player ", self.players), ("judged ", self.judged)):
            kept.update({name.removeprefix(kind): points for name, points in curves.items() if name.startswith(kind)})
        self.pieces, self.first = dict(state["pieces"]), state["first"]
        self.reported = set(state["reported"])

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
            judged={name: tuple(points) for name, points in self.judged.items()},
        )

    def keep(self, points: list[Point], name: str) -> None:
        """Add the means of a metric since the last evaluation, each at the last step of its piece."""
        points[:] = thin(points + [(step, total / count) for step, total, count in self.pieces.get(name, [])])


def thin(points: list[Point]) -> list[Point]:
    """Not too many points: of a long list the first, then the means of two neighbours each."""
    if len(points) <= MOST:
        return points
    rest = points[1:] if len(points) % 2 else points[2:]
    return [points[0], *((b[0], (a[1] + b[1]) / 2) for a, b in zip(rest[::2], rest[1::2], strict=True))]


def format_finding(found: Finding) -> str:
    """One line for the display."""
    return f"{found.name}: {found.evidence}. Try {found.change}"
