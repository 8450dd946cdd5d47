"""A command run once for each of its file operations, with a fault at that point, and then put right.

Each point is a forked process: what is imported stays imported, and a point costs a fraction of a second.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from descend import cli, recipes
from descend.engine.fit import Result
from descend.engine.run import Run
from descend.kinds.recipe import Recipe
from descend.verbs.resume import resume
from descend.verbs.train import TrainFlags, print_result, start_run
from descend.weights.checkpoints import resolve_checkpoint
from tests.faults.operations import Before, Operation, watch_operations

ERRORS = ("ENOSPC", "EIO", "EACCES", "EROFS")
READING = ("EIO", "EACCES")  # the errors that reading can meet too
TIMED = ("state.json", "checksums.json")  # how long the run took is part of its state
CRASHED, LONGEST = 77, 60  # the exit code of a crash; seconds before a process counts as hanging
Command = Callable[[Path], object]


def tiny(seed: int = 0) -> Recipe:
    """A network of 4 hidden units on a table of 178 wines, for 4 steps, evaluated and saved twice."""
    recipe: Any = recipes.get("mlp-wine")
    loop = replace(recipe.loop, steps=4, eval_every=2, save_every=2, batch=8, threads=1, seed=seed)
    return replace(recipe, model=replace(recipe.model, hidden=(4,)), loop=loop)


def train(run: Path, replaced: bool = False) -> None:
    tell(*start_run("tiny", TrainFlags(tiny(), str(run), replace=replaced, quiet=True), ()))


def train_again(run: Path) -> None:
    train(run, replaced=True)


def tell(run: Run, result: Result) -> None:
    """End as the command does, with an error where the report is missing; what it prints is not looked at."""
    with redirect_stdout(io.StringIO()):
        print_result(run, result, tiny())


def carry_on(run: Path) -> None:
    """What a user does after a fault: resume, or give the command again where nothing was begun."""
    if (run / "recipe.json").exists():
        tell(*resume(run, quiet=True))
    else:
        train(run)


@dataclass(frozen=True)
class Scenario:
    """What is there before, the command that meets the fault, and what puts it right."""

    name: str
    prepare: Command
    command: Command
    repair: Command


def prepare_nothing(run: Path) -> None:
    pass


def prepare_half(run: Path) -> None:
    """A run that was killed after its first checkpoint."""
    train(run)
    shutil.rmtree(run / "checkpoints" / "step-000004")
    for link in ("last", "best"):
        (run / "checkpoints" / link).unlink(missing_ok=True)
        (run / "checkpoints" / link).symlink_to("step-000002")


def prepare_other(run: Path) -> None:
    """Another run, of another seed, that is to be replaced."""
    start_run("tiny", TrainFlags(tiny(seed=5), str(run), quiet=True), ())


SCENARIOS = (
    Scenario("train", prepare_nothing, train, carry_on),
    Scenario("resume", prepare_half, carry_on, carry_on),
    Scenario("replace", prepare_other, train_again, train_again),
)


def fork(action: Callable[[], object], log: Path) -> int:
    """Run in a process of its own as the command line would; its exit code, or minus the signal that ended it."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(LONGEST)
            handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
            code = run_command(action)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_command(action: Callable[[], object]) -> int:
    """`descend`, with the action in the place of what its arguments ask for; ends when its threads have ended."""

    def dispatch(args: list[str]) -> int:
        action()
        return 0

    cli.dispatch = dispatch
    try:
        return cli.main([])
    finally:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()


class FaultAt:
    """Called before each operation: the fault comes with the k-th of those that it concerns, and all after it."""

    def __init__(self, k: int, concerns: Callable[[Operation], bool], strike: Callable[[Operation], None]):
        self.k, self.concerns, self.strike, self.count = k, concerns, strike, 0
        self.lock = threading.Lock()

    def __call__(self, operation: Operation) -> None:
        if not self.concerns(operation):
            return
        with self.lock:
            self.count += 1
            reached = self.count >= self.k
        if reached:
            self.strike(operation)


def make_fault(kind: str, k: int) -> FaultAt:
    """A "crash" before the k-th operation, or an error ("ENOSPC") of it and of all later ones."""
    if kind == "crash":
        return FaultAt(k, concerns(kind), lambda operation: os._exit(CRASHED))
    number = getattr(errno, kind)

    def strike(operation: Operation) -> None:
        named = () if operation.name in ("write", "os.fsync") else (operation.path,)  # as the system does it
        raise OSError(number, os.strerror(number), *named)

    return FaultAt(k, concerns(kind), strike)


def concerns(kind: str) -> Callable[[Operation], bool]:
    """Which operations a fault can be put before: those that change something, and for some errors all."""
    return lambda operation: operation.changes or kind in READING


@dataclass(frozen=True)
class Outcome:
    """How a point went: "done" when the fault was never reached, else "held" or what went wrong."""

    verdict: str
    said: str = ""


def try_point(scenario: Scenario, fault: Before, folder: Path, expected: dict[str, Any]) -> Outcome:
    """One point: the fault, what was said, and whether the run can be put right with the same bits as without it."""
    root, log = set_up(scenario, folder), folder / "log"

    def attempt() -> None:
        watch_operations(root, fault)
        scenario.command(root / "run")

    code = fork(attempt, log)
    said = log.read_text(errors="replace")
    if code not in (0, 2, CRASHED):
        return Outcome("hangs" if code == -signal.SIGALRM else "tracebacks", said)
    if code == 2 and (said.count("\n") != 1 or str(root) not in said):
        return Outcome("unnamed" if said.count("\n") == 1 else "tracebacks", said)
    if code == 0 and (wrong := find_difference(root / "run", expected)):
        return Outcome("different", wrong)
    if fork(lambda: scenario.repair(root / "run"), log):
        return Outcome("lost", said + log.read_text(errors="replace"))
    if wrong := compare(root / "run", expected):
        return Outcome("different", wrong)
    return Outcome("done" if code == 0 else "held", said)


def set_up(scenario: Scenario, folder: Path) -> Path:
    """A fresh folder with what the scenario starts from."""
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    if (folder / scenario.name).exists():
        shutil.copytree(folder / scenario.name, root / "run", symlinks=True)
    return root


def describe_run(run: Path) -> dict[str, Any]:
    """What must be equal: the checkpoints that are last and best, the links, and the metrics, all but for times."""
    found: dict[str, Any] = {}
    for which in ("last", "best"):
        checkpoint = resolve_checkpoint(run, which)
        found[which] = checkpoint.name
        found[f"{which} link"] = (run / "checkpoints" / which).resolve().name
        files = [path for path in checkpoint.iterdir() if path.name not in TIMED]
        found |= {f"{which} {path.name}": path.read_bytes() for path in sorted(files)}
    timed = ("time", "rate")
    found["metrics"] = [{k: v for k, v in line.items() if k not in timed} for line in Run(run).lines()]
    return found


def compare(run: Path, expected: dict[str, Any]) -> str:
    """What differs from the uninterrupted run, is missing or left over; or nothing."""
    left = [path.name for folder in (run, run / "checkpoints") for path in folder.glob(".*")]
    missing = [] if (run / "report.html").exists() else ["no report.html"]
    return ", ".join(
        filter(None, [find_difference(run, expected), *missing, *(f"{name} is left over" for name in left)])
    )


def find_difference(run: Path, expected: dict[str, Any]) -> str:
    """What differs from the uninterrupted run; or nothing."""
    found = describe_run(run)
    return ", ".join(name for name in expected | found if found.get(name) != expected.get(name))


def prepare(folder: Path) -> dict[str, Any]:
    """Make what the scenarios start from; returns what each must come to."""
    torch.set_num_threads(1)
    train(folder / "whole")
    for scenario in SCENARIOS:
        fork(lambda: scenario.prepare(folder / scenario.name), folder / "log")
    return describe_run(folder / "whole")


def count_operations(scenario: Scenario, kind: str, folder: Path) -> list[str]:
    """The operations of an undisturbed run that this kind of fault can be put before."""
    root, seen = set_up(scenario, folder), []

    def attempt() -> None:
        watch_operations(root, lambda operation: seen.append(operation) if concerns(kind)(operation) else None)
        scenario.command(root / "run")
        (folder / "operations").write_text("\n".join(f"{o.name} {o.path}" for o in seen))

    fork(attempt, folder / "log")
    return (folder / "operations").read_text().splitlines()
