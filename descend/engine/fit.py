"""fit: train until the steps, the patience or the time run out, or somebody asks to stop. Nothing is ever lost.

Early stopping: every `eval_every` steps the watched validation score is judged. It is an improvement if it beats the
best by more than `margin`; then the weights are saved and `checkpoints/best` points at them. After `patience`
evaluations in a row without one, training ends, and `best` is the model to use. Any score of the task can be watched,
so fine-tuning can watch a general benchmark beside its own loss (VOM 13.6.4).

Systems: early-stopping
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from descend.contracts import Schedule
from descend.engine import checkpoint
from descend.engine.background import copy_state
from descend.engine.distributed import World
from descend.engine.faults import NotFinite
from descend.engine.frozen import check_unchanged, checksums
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.references import Stored
from descend.engine.run import Run
from descend.engine.signals import Request, stop_requests
from descend.engine.training import Training
from descend.errors import Mistake

LINES = 1000  # lines of training metrics in a run, however many steps it has


class Display(Protocol):
    """Where progress is shown."""

    def update(self, step: int, loss: float, rate: float, valid: dict[str, float] | None = None) -> None: ...

    def message(self, text: str) -> None: ...


class Watch(Protocol):
    """Asked at every evaluation, with the metrics of the steps since the last one: what is to be said and logged."""

    def __call__(self, step: int, seen: list[dict[str, float]], scores: dict[str, float]) -> list[dict[str, str]]: ...


@dataclass(frozen=True)
class Result:
    """How a run ended: finished, patience, budget, SIGINT or SIGTERM."""

    reason: str
    step: int
    best: float | None
    best_step: int
    seconds: float


def fit(
    parts: Parts,
    loop: Loop,
    schedule: Schedule,
    run: Run,
    display: Display,
    world: World | None = None,
    resume: bool = False,
    budget: float = 0.0,
    watch: Watch | None = None,
) -> Result:
    """Train `parts` as `loop` says, into the folder of `run`; `budget` is the longest time in seconds, 0 for any."""
    world = world or World()
    training = Training(parts, loop, schedule, world)
    if resume:
        path, step, state = checkpoint.newest(run.checkpoints, display.message)
        training.load_state_dict(state)
        best = run.checkpoints / f"step-{training.best_step:06d}"
        if world.first:
            run.forget_after(step)
            checkpoint.point(run.checkpoints, "last", path)  # a kill may have come before it was linked
            if best.is_dir():
                checkpoint.point(run.checkpoints, "best", best)
        display.message(f"resumed from {path}")
    with stop_requests() as request:
        try:
            reason = _loop(training, run, display, request, budget, watch)
            check_unchanged(checksums(training.task), training.frozen)
        except NotFinite as fault:
            if world.first:
                run.log({"step": training.step, "time": training.seconds, "event": "failed", "fault": str(fault)})
            good = checkpoint.names(run.checkpoints)
            kept = f"the last good checkpoint is {run.checkpoints / good[-1]}" if good else "there is no checkpoint yet"
            raise Mistake(f"step {training.step + 1}: {fault}; {kept}. Try a lower --optim.lr or --clip 1.0") from None
        finally:
            run.close()
    return Result(reason, training.step, training.best, training.best_step, training.seconds)


def _loop(training: Training, run: Run, display: Display, request: Request, budget: float, watch: Watch | None) -> str:
    """Steps until the end; returns why it ended."""
    loop, world = training.loop, training.world
    higher, watched = loop.watched
    every = max(1, loop.steps // LINES)
    clock = Clock(training)
    seen: list[dict[str, float]] = []
    reason = "finished" if training.step >= loop.steps else ""  # a run that had ended already
    while not reason:
        metrics = training.advance()
        seen.append(metrics)
        training.seconds, step, rate = clock.seconds(), training.step, clock.rate()
        if step % every == 0 or step == loop.steps:
            lr = next(iter(training.optims.values())).param_groups[0]["lr"]
            _log(training, run, {**metrics, "lr": lr, "rate": rate})
            clock.restart()
        display.update(step, loss=training.sum_losses(metrics), rate=rate)
        reason = "finished" if step == loop.steps else ""
        if world.any(bool(request.signal)):
            reason = signal.Signals(request.signal or signal.SIGTERM).name
        elif world.any(bool(budget) and training.seconds > budget and not reason):
            reason = "budget"
        improved = False
        if step % loop.eval_every == 0 or reason in ("finished", "budget"):
            scores = training.evaluate()
            if watched not in scores:
                raise Mistake(f"--watch {loop.watch!r}: the scores are {', '.join(sorted(scores))}")
            improved = training.judge(scores[watched], higher)
            _log(training, run, {"valid": scores})
            display.update(step, loss=training.sum_losses(metrics), rate=rate, valid=scores)
            for warning in watch(step, seen, scores) if watch else ():
                _log(training, run, {"event": "warning", **warning})
                display.message(warning["said"])
            seen.clear()
            if loop.patience and training.waited >= loop.patience and not reason:
                reason = "patience"
        if improved or reason or step % loop.save_every == 0:
            save(training, run, improved)
            clock.restart()
    _log(training, run, {"event": reason})
    return reason


class Clock:
    """Time since the run began (over all its resumes), and the throughput since the last restart."""

    def __init__(self, training: Training):
        self.training, self.before, self.began = training, training.seconds, time.perf_counter()
        self.restart()

    def restart(self) -> None:
        self.since, self.step = time.perf_counter(), self.training.step

    def seconds(self) -> float:
        return self.before + time.perf_counter() - self.began

    def rate(self) -> float:
        steps = self.training.step - self.step
        return self.training.parts.units_per_batch * steps / max(time.perf_counter() - self.since, 1e-9)


def _log(training: Training, run: Run, values: dict[str, Any]) -> None:
    if training.world.first:
        run.log({"step": training.step, "time": round(training.seconds, 3), **values})


def save(training: Training, run: Run, best: bool) -> None:
    """Write a checkpoint (all processes gather, the first one writes), in a thread where there is memory for a copy."""
    run.writer.wait()  # one at a time: the copy before this one is then free
    state, weights, parts, step = training.state_dict(), training.weights(), training.parts, training.step
    copied = copy_state(state, weights, run.writer.copies) if training.world.size == 1 else None
    state, weights = copied or (state, weights)

    def write_model(folder: Path) -> Stored:
        written = parts.model.save_pretrained(folder, state=weights)
        if parts.save_extra:
            parts.save_extra(folder)
        return written

    def write() -> None:
        path = checkpoint.save(run.checkpoints, step, write_model, state)
        if best:
            checkpoint.point(run.checkpoints, "best", path)
        checkpoint.prune(run.checkpoints)

    if copied:
        run.writer.start(write)
    elif training.world.first:
        write()
    training.world.wait()
