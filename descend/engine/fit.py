"""fit: train until the steps, the patience or the time run out, or somebody asks to stop. Nothing is ever lost.

Early stopping: every `eval_every` steps the watched validation score is judged. It is an improvement if it beats the
best by more than `margin`; then the weights are saved and `checkpoints/best` points at them. After `patience`
evaluations in a row without one, training ends, and `best` is the model to use. Any score of the task can be watched,
so fine-tuning can watch a general benchmark beside its own loss (VOM 13.6.4).

The end is part of the state: a run that has ended trains no further, however often it is resumed.

Systems: early-stopping
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from descend.contracts import Schedule
from descend.engine import checkpoint, snapshots
from descend.engine.background import copy_state
from descend.engine.distributed import World
from descend.engine.faults import NotFinite
from descend.engine.fingerprint import Fingerprint, find_changes, format_changes
from descend.engine.frozen import check_unchanged, checksums
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.references import Stored
from descend.engine.run import Run
from descend.engine.signals import Request, stop_requests
from descend.engine.training import Training
from descend.errors import Mistake
from descend.weights.checkpoints import step_name

LINES = 1000  # lines of training metrics in a run, however many steps it has


class Display(Protocol):
    """Where progress is shown."""

    def update(self, step: int, loss: float, rate: float, valid: dict[str, float] | None = None) -> None: ...

    def message(self, text: str) -> None: ...


class Watch(Protocol):
    """Sees every step, and says at an evaluation what is to be said and logged. What it remembers is state."""

    def observe(self, step: int, metrics: dict[str, float]) -> None: ...

    def __call__(self, step: int, scores: dict[str, float]) -> list[dict[str, str]]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any] | None, lines: list[dict[str, Any]]) -> None:
        """From a checkpoint; where that has no state of it, from what was logged until then."""


@dataclass(frozen=True, repr=False)
class Result:
    """How a run ended: finished, patience, budget, SIGINT or SIGTERM."""

    reason: str
    step: int
    best: float | None
    best_step: int
    seconds: float
    unreported: str = ""
    """Why there is no report; empty where there is one."""
    watched: str = ""
    """Which validation score the best is of."""

    def __repr__(self) -> str:
        best = (
            f"; best {self.watched or 'score'} {self.best:.4g} at step {self.best_step}"
            if self.best is not None
            else ""
        )
        return f"<Result: {self.reason} at step {self.step} after {self.seconds:.1f} s{best}>"


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
    accept_changes: bool = False,
) -> Result:
    """Train `parts` as `loop` says, into the folder of `run`; `budget` is the longest time in seconds, 0 for any; with
    `resume` it is more time for a run that has used up its own.

    A resume refuses data or an environment other than the checkpoint's, unless such changes are accepted.
    """
    world = world or World()
    training = Training(parts, loop, schedule, world)
    if resume and not checkpoint.names(run.checkpoints):  # it was killed before its first checkpoint
        if world.first:
            run.forget_after(0)
        display.message("there is no checkpoint yet: from the beginning")
    elif resume:
        _restore(training, run, display, watch, accept_changes)
        if budget:  # it adds to the time that the run has had
            training.stopped, budget = "", training.seconds + budget
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
    watched = loop.watch.partition(" ")[2]
    return Result(reason, training.step, training.best, training.best_step, training.seconds, "", watched)


def _restore(training: Training, run: Run, display: Display, watch: Watch | None, accept_changes: bool) -> None:
    """Go back to the newest intact checkpoint, and repair what a kill after it left undone."""
    path, step, state = checkpoint.newest(run.checkpoints, display.message)
    changes = _find_changes(training, state, display)
    if training.world.any(bool(changes)) and not accept_changes:
        found = format_changes(changes) or "another process has found other data"
        raise Mistake(
            f"{run.folder} would not continue to the same bits: {found}. "
            f"Put it back, or take it as it is: descend resume {run.folder} --accept-changes"
        )
    training.load_state_dict(state)
    if training.world.first:
        run.forget_after(step, training.ended)
        snapshots.forget_after(run.folder, step)
        checkpoint.clean(run.checkpoints)
        checkpoint.point(run.checkpoints, "last", path)
        best = run.checkpoints / step_name(training.best_step)
        if best.is_dir():
            checkpoint.point(run.checkpoints, "best", best)
        if watch:
            watch.restore(state.get("watcher"), run.lines())
        if changes:
            _log(training, run, {"event": "resumed", "changes": changes})
    display.message(f"resumed from {path}" + (f"; accepted: {format_changes(changes)}" if changes else ""))


def _find_changes(training: Training, state: dict[str, Any], display: Display) -> list[str]:
    """What differs from when the checkpoint was written. The data are each process's own matter, the environment is
    the first one's: machines may differ, as long as each time in the same way."""
    if training.parts.fingerprint is None:
        return []
    before: Fingerprint | None = state.get("fingerprint")
    if before is None:
        display.message("an earlier release wrote this checkpoint: whether its data have changed cannot be known")
        return []
    now = training.fingerprint(native="native code" in before["environment"]) or {}
    return find_changes(before, now if training.world.first else {**now, "environment": {}})


def _loop(training: Training, run: Run, display: Display, request: Request, budget: float, watch: Watch | None) -> str:
    """Steps until the end; returns why it ended."""
    loop, world = training.loop, training.world
    every = max(1, loop.steps // LINES)
    clock = Clock(training)
    if training.step >= loop.steps and not training.ended:  # a signal came in the last step
        save(training, run, _evaluate(training, run, display, watch, clock.rate()), watch)
    elif training.ended:
        more = f"for more time: descend resume {run.folder} --budget 10m"
        left = more if training.ended == "budget" else "nothing is left to train"
        display.message(f"this run has ended ({training.ended}, step {training.step:,}): {left}")
        if any(line.get("event") == training.ended and line.get("step") == training.step for line in run.lines()):
            return training.ended
    reason = training.ended
    while not reason:
        metrics = training.advance()
        training.seconds, step, rate = clock.seconds(), training.step, clock.rate()
        if training.monitor.found or training.goes_back:
            _answer_spike(training, run, display)
        if watch:
            watch.observe(step, metrics)
        if step % every == 0 or step == loop.steps:
            lr = next(iter(training.optims.values())).param_groups[0]["lr"]
            _log(training, run, {**metrics, "lr": lr, "rate": rate})
            clock.restart()
        display.update(step, loss=training.sum_losses(metrics), rate=rate)
        if world.any(bool(request.signal)):
            reason = signal.Signals(request.signal or signal.SIGTERM).name
        elif step < loop.steps and world.any(bool(budget) and training.seconds > budget):
            reason = training.stopped = "budget"
        improved = False
        if step % loop.eval_every == 0 or reason == "budget" or (step == loop.steps and not reason):
            improved = _evaluate(training, run, display, watch, rate)
        reason = reason or training.ended
        if improved or reason or step % loop.save_every == 0:
            save(training, run, improved, watch)
            clock.restart()
    _log(training, run, {"event": reason})
    return reason


def _answer_spike(training: Training, run: Run, display: Display) -> None:
    """Go back where that is asked for, and say what was found and done."""
    done = {"skip": "this step was left out", "rollback": "there is no checkpoint to go back to yet"}
    said = done.get(training.loop.spikes, "training went on")
    if training.goes_back:
        run.writer.wait()
        training.world.wait()
        if checkpoint.names(run.checkpoints):
            path, step, state = checkpoint.newest(run.checkpoints, display.message)
            said = f"back to {path.name} no more: lower --optim.lr, or give --clip 1.0"
            if training.monitor.may_go_back(step):
                training.load_weights(state)
                said = f"back to the weights of {path.name}, on with the data after this step"
    for warning in training.monitor.report(training.step, said):
        _log(training, run, {"event": "warning", **warning})
        display.message(warning["said"])


def _evaluate(training: Training, run: Run, display: Display, watch: Watch | None, rate: float) -> bool:
    """Validate, log, say what there is to be said; whether it is the best so far."""
    higher, watched = training.loop.watched
    scores = training.evaluate()
    if watched not in scores:
        raise Mistake(f"--watch {training.loop.watch!r}: the scores are {', '.join(sorted(scores))}")
    improved = training.judge(scores[watched], higher)
    _log(training, run, {"valid": scores})
    display.update(training.step, loss=0.0, rate=rate, valid=scores)
    _keep_snapshot(training, run, display)
    for warning in watch(training.step, scores) if watch else ():
        _log(training, run, {"event": "warning", **warning})
        display.message(warning["said"])
    return improved


def _keep_snapshot(training: Training, run: Run, display: Display) -> None:
    """Images of this step; whatever keeps them from being made is told, and costs no training."""
    try:
        images = training.make_snapshot()
        if images is not None and training.world.first:
            snapshots.keep_images(run.folder, training.step, images)
    except (ArithmeticError, LookupError, Mistake, RuntimeError, TypeError, ValueError) as error:
        display.message(f"no samples of step {training.step:,}: {str(error).partition(chr(10))[0]}")


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


def save(training: Training, run: Run, best: bool, watch: Watch | None = None) -> None:
    """Write a checkpoint (all processes gather, the first one writes), in a thread where there is memory for a copy."""
    run.writer.wait()  # one at a time: the copy before this one is then free
    training.check_finite()
    state = training.state_dict() | {"watcher": watch.state_dict() if watch else None}
    weights, parts, step = training.weights(), training.parts, training.step
    copied = copy_state(state, weights, run.writer.copies) if training.world.size == 1 else None
    state, weights = copied or (state, weights)

    def write_model(folder: Path) -> Stored:
        written = parts.model.save_pretrained(folder, state=weights)
        if parts.save_extra:
            parts.save_extra(folder)
        return written

    def write() -> None:
        run.sync()
        path = checkpoint.save(run.checkpoints, step, write_model, state)
        if best:
            checkpoint.point(run.checkpoints, "best", path)
        checkpoint.prune(run.checkpoints, training.loop.keep)

    if copied:
        run.writer.start(write)
    elif training.world.first:
        write()
    training.world.wait()
