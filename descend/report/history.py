"""The history of a run, read from its folder alone: what was asked, how it went, how it ended. Needs no torch."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from descend.errors import Mistake
from descend.files import parse_metrics, read_bytes, read_json

ENDS = {"finished": "finished", "patience": "finished", "failed": "failed"}  # any other end can be resumed
STILL = 60.0  # seconds without a new line after which a run without a lock is considered dead


@dataclass
class History:
    """What the files of a run say. Lines that cannot be read are kept apart, with their numbers."""

    folder: Path
    recipe: dict[str, Any]
    train: list[dict[str, Any]] = field(default_factory=list)
    valid: list[dict[str, Any]] = field(default_factory=list)
    test: list[dict[str, Any]] = field(default_factory=list)
    """The held-out scores, a line for each checkpoint that was judged by them."""
    events: list[dict[str, Any]] = field(default_factory=list)
    damaged: list[tuple[int, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.recipe.get("name") or self.folder.name)

    @property
    def loop(self) -> dict[str, Any]:
        """The values of the recipe that say how long to train."""
        values = self.recipe.get("values")
        values = values if isinstance(values, dict) else {}
        return values["loop"] if isinstance(values.get("loop"), dict) else values

    @property
    def facts(self) -> dict[str, Any]:
        facts = self.recipe.get("facts")
        return facts if isinstance(facts, dict) else {}

    @property
    def unit(self) -> str:
        """What the throughput counts."""
        return str(self.facts.get("unit", "units"))

    @property
    def steps(self) -> int | None:
        steps = self.loop.get("steps")
        return steps if isinstance(steps, int) else None

    @property
    def step(self) -> int:
        return max((line["step"] for line in (*self.train, *self.valid, *self.events)), default=0)

    @property
    def seconds(self) -> float:
        return max((line["time"] for line in (*self.train, *self.valid, *self.events) if "time" in line), default=0.0)

    @property
    def watch(self) -> tuple[str, str]:
        """("min", "loss"): how the best score is chosen."""
        direction, _, score = str(self.loop.get("watch", "min loss")).partition(" ")
        return direction, score

    @property
    def best(self) -> tuple[int, float] | None:
        """The step and value of the best validation score."""
        direction, score = self.watch
        scores = [(line["step"], as_number(line["valid"].get(score))) for line in self.valid]
        finite = [(step, value) for step, value in scores if math.isfinite(value)]
        choose = max if direction == "max" else min
        return choose(finite, key=lambda pair: pair[1]) if finite else None

    @property
    def best_scores(self) -> dict[str, float]:
        """All validation scores of the best step."""
        if self.best is None:
            return {}
        line = next(line for line in self.valid if line["step"] == self.best[0])
        return {str(name): as_number(value) for name, value in line["valid"].items()}

    @property
    def tested(self) -> dict[str, float]:
        """The test scores of the best checkpoint; without one of it, of the checkpoint that was judged last."""
        if not self.test:
            return {}
        of_best = [line for line in self.test if self.best and line["step"] == self.best[0]]
        line = (of_best or self.test)[-1]
        return {str(name): as_number(value) for name, value in line["scores"].items()}

    @property
    def losses(self) -> list[str]:
        """The training losses: loss, or one for each player (loss_d, loss_g)."""
        named = self.find_metrics("loss_")
        if self.find_metrics("loss"):
            return ["loss"]
        values = self.recipe.get("values")
        rules = values.get("optim") if isinstance(values, dict) else None
        players = {f"loss_{name}" for name, rule in rules.items() if isinstance(rule, dict)} if rules else set()
        return [name for name in named if name in players] or named

    @property
    def terms(self) -> list[str]:
        """What the losses are made of, where it was logged."""
        return [name for name in self.find_metrics("loss_") if name not in self.losses]

    @property
    def measured(self) -> list[str]:
        """What the task measured in training besides losses."""
        loop = ("step", "time", "lr", "rate", "grad_norm", "loss")
        names = {name for line in self.train for name, value in line.items() if isinstance(value, int | float)}
        return sorted(name for name in names if name not in loop and not name.startswith("loss_"))

    def find_metrics(self, name: str) -> list[str]:
        """The training metrics of this name, or that begin with it where it ends in "_"."""
        prefix = name.endswith("_")
        names = {key for line in self.train for key in line if key.startswith(name) and (prefix or key == name)}
        return sorted(names)

    @property
    def state(self) -> str:
        """finished, failed, interrupted or running."""
        ended = [line for line in self.events if line["event"] not in ("resumed", "started", "warning")]
        if ended and ended[-1]["step"] >= self.step and str(ended[-1]["event"]) in ENDS:
            return ENDS[str(ended[-1]["event"])]
        return "running" if is_alive(self.folder) else "interrupted"

    def series(self, name: str) -> tuple[list[float], list[float]]:
        """Steps and values of one training metric, where it was logged."""
        found = [(line["step"], as_number(line[name])) for line in self.train if name in line]
        return [float(step) for step, _ in found], [value for _, value in found]


def read_history(folder: Path) -> History:
    """The history of a run folder. A missing or damaged recipe.json is a Mistake; a damaged metrics line is noted."""
    if not (folder / "recipe.json").exists():
        raise Mistake(f"{folder} is not a run folder (no recipe.json); descend runs lists the runs")
    history = History(folder, read_json(folder / "recipe.json"))
    path = folder / "metrics.jsonl"
    if path.exists():
        for n, text in enumerate(read_bytes(path, most=2**40).decode(errors="replace").splitlines(), 1):
            if text.strip():
                add_line(history, n, text)
    return history


def add_line(history: History, n: int, text: str) -> None:
    """Sort one line of metrics.jsonl into the history."""
    line = parse_metrics(text)
    if line is None:
        history.damaged.append((n, text))
    elif line.get("event") == "test" and isinstance(line.get("scores"), dict):
        history.test.append(line)
    elif "event" in line:
        history.events.append(line)
    elif isinstance(line.get("valid"), dict):
        history.valid.append(line)
    else:
        history.train.append(line)


def as_number(value: Any) -> float:
    """A float; NaN for what is not a number."""
    return float(value) if isinstance(value, int | float) else math.nan


def is_alive(folder: Path) -> bool:
    """Whether a process is training in the folder: it holds the lock, or it wrote a moment ago."""
    lock = folder / "lock"
    try:
        import fcntl

        with lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False
    except (ImportError, OSError):
        newest = max((p.stat().st_mtime for p in folder.glob("*.json*")), default=0.0)
        return time.time() - newest < STILL
