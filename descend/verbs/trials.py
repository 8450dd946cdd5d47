"""What a search prints: a line for each trial as it ends, a live line in a terminal, and the outcome."""

from __future__ import annotations

import json as json_format
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from descend.engine.fit import Display
from descend.engine.progress import Quiet, clock, steady
from descend.tuning.study import STATES, Study

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

REDRAW = 0.2  # seconds between two drawings of the live line


class Shown:
    """Lines on the error stream, so that the output holds the outcome alone."""

    def __init__(self, study: Study, trials: int, quiet: bool):
        self.study, self.trials, self.quiet = study, trials, quiet
        self.score = study.plan.watch.split()[1]
        self.live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def begin(self, trial: FrozenTrial) -> Display:
        """The display of a trial that starts."""
        return Quiet() if self.quiet or not self.live else Live(self.head(trial))

    def head(self, trial: FrozenTrial) -> str:
        values = "  ".join(f"{name} {format_value(value)}" for name, value in trial.params.items())
        return f"trial {trial.number:03d} of {self.trials}  {values}"

    def report(self, trial: FrozenTrial) -> None:
        """A trial has ended: its values, its score, and the best so far."""
        if self.quiet:
            return
        state, noted = STATES[trial.state.name], trial.user_attrs
        if state == "complete":
            said = f"{self.score} {steady(trial.value or 0.0)} at step {noted['best_step']}"
        elif state == "pruned":
            said = f"pruned at step {noted['step']}"
        else:
            said = f"failed: {noted.get('fault', '')}"
        best = self.study.best()
        known = f"best {steady(best.value or 0.0)} ({best.number:03d})" if best else ""
        parts = [self.head(trial), said, clock(noted["seconds"]), known]
        print(("\r\x1b[K" if self.live else "") + "  ".join(filter(None, parts)), file=sys.stderr, flush=True)


class Live:
    """One line in a terminal, drawn over and over."""

    def __init__(self, head: str):
        self.head, self.drawn, self.valid = head, 0.0, ""

    def update(self, step: int, loss: float, rate: float, valid: dict[str, float] | None = None) -> None:
        if valid is not None:
            self.valid = "  ".join(f"{name} {steady(value)}" for name, value in valid.items())
        elif time.monotonic() - self.drawn < REDRAW:
            return
        self.drawn = time.monotonic()
        print(f"\r\x1b[K{self.head}  step {step}  {self.valid}"[:200], end="", file=sys.stderr, flush=True)

    def message(self, text: str) -> None:
        pass


def format_value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def print_outcome(found: dict[str, Any], json: bool) -> None:
    """The outcome; a search that a signal stopped ends with the signal's exit code."""
    print(json_format.dumps(found, indent=1) if json else "\n".join(list_outcome(found)), flush=True)
    if found["state"].startswith("SIG"):
        raise SystemExit(130 if found["state"] == "SIGINT" else 143)


def list_outcome(found: dict[str, Any]) -> list[str]:
    """The best trial, what mattered, and how to go on."""
    trials, best = found["trials"], found["best"]
    ended = {state: sum(t["state"] == state for t in trials) for state in ("complete", "pruned", "failed")}
    counts = ", ".join(f"{count} {state}" for state, count in ended.items() if count)
    lines = [f"{sum(ended.values())} of {found['wanted']} trials ({counts or 'none ended'})"]
    if best:
        values = "  ".join(f"{name} {format_value(value)}" for name, value in best["values"].items())
        score = found["watch"].split()[1]
        lines.append(f"best validation {score} {best['score']:.4f}: trial {best['number']:03d}  {values}")
    if found["importance"]:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in found["importance"].items())
        lines.append(f"importance {shares}")
    if found["command"]:
        lines.append(f"train      {found['command']}")
    if best:
        lines.append(f"its run    {found['study']}/{best['run']}")
    lines.append(f"report     {found['study']}/report.html")
    if found["state"] != "finished":
        why = "the time is up" if found["state"] == "budget" else found["state"]
        lines.append(f"stopped: {why}. Continue with: descend tune --resume {found['study']}")
    return lines
