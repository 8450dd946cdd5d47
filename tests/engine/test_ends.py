"""The end of a run is part of its state: a resume trains no further, and ends where a run without a stop ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Move, Task
from descend.data.streams.arrays import InOrder, Shuffled
from descend.engine import checkpoint
from descend.engine.fit import Result, fit
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.models.mlp import MLP, MLPConfig
from descend.optim.rules import SGD
from descend.weights.checkpoints import resolve_checkpoint
from tests.engine.small import small, weights

NAN = float("nan")


class Said(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def message(self, text: str) -> None:
        self.lines.append(text)


class Scripted(Task):
    """A step adds 1 to every weight, and the score of step k is the k-th of the script, however often it is asked."""

    players = ("model",)

    def __init__(self, script: list[float], kill_at: int = 0):
        super().__init__()
        self.model = MLP(MLPConfig(inputs=2, hidden=(), outputs=1))
        self.script, self.kill_at = script, kill_at
        for p in self.model.parameters():
            nn.init.zeros_(p)

    @property
    def step(self) -> int:
        return round(next(self.model.parameters())[0, 0].item())

    def moves(self, batch: dict[str, Tensor]) -> Iterator[Move]:
        yield Move("model", lambda: -sum((p.sum() for p in self.model.parameters()), torch.zeros(())))
        if self.step == self.kill_at:
            os.kill(os.getpid(), signal.SIGTERM)

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"loss": torch.tensor([self.script[self.step - 1]])}


def run_script(
    folder: Path, script: list[float], resume: bool = False, kill_at: int = 0, budget: float = 0.0, **changes: object
) -> tuple[Result, Run, list[str]]:
    """The result, the run and what was said; an evaluation after every step unless `changes` of the loop say else."""
    torch.set_num_threads(1)
    task, x = Scripted(script, kill_at), torch.zeros(1, 2)
    loop = replace(Loop(steps=len(script), batch=1, eval_every=1, save_every=1, threads=1), **changes)  # type: ignore[arg-type]
    parts = Parts(task, task.model, Shuffled({"x": x}, 1), InOrder({"x": x}), {"model": SGD(lr=1.0, momentum=0.0)})
    run = Run(folder / "run") if resume else Run.create(folder / "run", {"name": "scripted"})
    said = Said()
    return fit(parts, loop, lambda step, steps: 1.0, run, said, resume=resume, budget=budget), run, said.lines


SCRIPT = [5.0, 3.0, 4.0, 4.0, 4.0, 1.0, 1.0, 1.0]


def test_a_run_that_patience_ended_trains_no_further(tmp_path: Path) -> None:
    first, run, _ = run_script(tmp_path, SCRIPT, patience=2)
    assert (first.reason, first.step) == ("patience", 4)
    before = weights(run)
    again, run, said = run_script(tmp_path, SCRIPT, resume=True, patience=2)
    assert (again.reason, again.step, again.best_step) == ("patience", 4, 2)
    assert weights(run) == before
    assert any("has ended (patience, step 4)" in line for line in said)
    assert [line["event"] for line in run.lines() if "event" in line] == ["patience"]


def test_a_kill_after_the_last_checkpoint_ends_at_the_same_step(tmp_path: Path) -> None:
    """The end was reached and saved, but neither logged nor told when the process died."""
    _, run, _ = run_script(tmp_path, SCRIPT, patience=2)
    lines = run.metrics_file.read_text().splitlines(keepends=True)
    run.metrics_file.write_text("".join(lines[:-1]))
    again, run, _ = run_script(tmp_path, SCRIPT, resume=True, patience=2)
    assert (again.reason, again.step) == ("patience", 4)
    assert run.lines()[-1]["event"] == "patience"


def test_more_patience_goes_on(tmp_path: Path) -> None:
    """The end follows from the state and the recipe, so another recipe may have another end."""
    run_script(tmp_path, SCRIPT, patience=2)
    again, _, _ = run_script(tmp_path, SCRIPT, resume=True, patience=5)
    assert (again.reason, again.step, again.best_step) == ("finished", 8, 6)


def test_a_run_whose_time_was_over_trains_no_further(tmp_path: Path) -> None:
    first, _, _ = run_script(tmp_path, [2.0] * 5, budget=1e-9)
    assert (first.reason, first.step) == ("budget", 1)
    again, _, said = run_script(tmp_path, [2.0] * 5, resume=True)
    assert (again.reason, again.step) == ("budget", 1)
    assert any("has ended (budget, step 1): for more time: descend resume" in line for line in said)


def test_more_time_for_a_run_whose_time_was_over(tmp_path: Path) -> None:
    whole, other, _ = run_script(tmp_path / "whole", [2.0] * 5)
    run_script(tmp_path, [2.0] * 5, budget=1e-9)
    one_more, _, _ = run_script(tmp_path, [2.0] * 5, resume=True, budget=1e-9)
    assert (one_more.reason, one_more.step) == ("budget", 2)
    again, run, _ = run_script(tmp_path, [2.0] * 5, resume=True, budget=60.0)
    assert (again.reason, again.step) == (whole.reason, whole.step) == ("finished", 5)
    assert weights(run) == weights(other)


def test_a_signal_in_the_last_step_leaves_the_last_evaluation_to_the_resume(tmp_path: Path) -> None:
    script = [3.0, 2.0, 1.0]
    whole, _, _ = run_script(tmp_path / "whole", script, eval_every=10)
    stopped, run, _ = run_script(tmp_path, script, kill_at=3, eval_every=10)
    assert (stopped.reason, stopped.step, stopped.best) == ("SIGTERM", 3, None)
    again, run, _ = run_script(tmp_path, script, resume=True, eval_every=10)
    assert (again.reason, again.step, again.best, again.best_step) == ("finished", 3, 1.0, 3)
    assert (whole.best, whole.best_step) == (again.best, again.best_step)
    assert resolve_checkpoint(run.folder, "best").name == (run.checkpoints / "best").resolve().name == "step-000003"
    assert run.lines()[-2]["valid"] == {"loss": 1.0}


def test_a_signal_with_the_last_of_the_patience_ends_there(tmp_path: Path) -> None:
    stopped, _, _ = run_script(tmp_path, SCRIPT, kill_at=4, patience=2)
    assert (stopped.reason, stopped.step) == ("SIGTERM", 4)
    again, _, _ = run_script(tmp_path, SCRIPT, resume=True, patience=2)
    assert (again.reason, again.step) == ("patience", 4)


@pytest.mark.parametrize("watch", ["min loss", "max loss"])
@pytest.mark.parametrize(
    ("script", "best"),
    [([NAN, 2.0, 2.0], 2), ([NAN, NAN, 2.0], 3), ([2.0, NAN, 2.0], 1), ([NAN, NAN, NAN], 1), ([NAN, float("inf")], 2)],
)
def test_nan_is_the_worst_score(watch: str, script: list[float], best: int, tmp_path: Path) -> None:
    result, run, _ = run_script(tmp_path, script, watch=watch)
    assert result.best_step == best
    assert (run.checkpoints / "best").resolve().name == f"step-{best:06d}"


def test_nan_counts_towards_patience(tmp_path: Path) -> None:
    result, _, _ = run_script(tmp_path, [3.0, NAN, NAN, 1.0], patience=2)
    assert (result.reason, result.step, result.best_step) == ("patience", 3, 1)


def test_last_is_what_is_there_and_is_linked_again(tmp_path: Path) -> None:
    """A crash between renaming a checkpoint and linking it: readers find it, and the next resume repairs the link."""
    recipe = small(tmp_path, steps=6)
    run = Run.create(tmp_path / "run", {"name": "small"})
    fit(recipe.build(), recipe.loop, recipe.schedule, run, Quiet())
    newest = checkpoint.names(run.checkpoints)[-1]
    checkpoint.point(run.checkpoints, "last", run.checkpoints / checkpoint.names(run.checkpoints)[0])
    assert resolve_checkpoint(run.folder, "last").name == newest
    result = fit(recipe.build(), recipe.loop, recipe.schedule, Run(run.folder), Quiet(), resume=True)
    assert result.reason == "finished"
    assert (run.checkpoints / "last").resolve().name == newest


def test_names_beyond_a_million_steps_are_in_order(tmp_path: Path) -> None:
    """One digit more: by number it is the newest, by letters it would be the oldest."""
    recipe = small(tmp_path, steps=3)
    run = Run.create(tmp_path / "run", {"name": "small"})
    fit(recipe.build(), recipe.loop, recipe.schedule, run, Quiet())
    for step in (999_999, 1_000_000, 1_000_001):
        path = checkpoint.save(run.checkpoints, step, lambda folder: None, {"best_step": 999_999, "step": step})
        checkpoint.prune(run.checkpoints)
        assert checkpoint.newest(run.checkpoints, print)[:2] == (path, step)
        assert resolve_checkpoint(run.folder, "last") == path
    assert checkpoint.names(run.checkpoints)[-2:] == ["step-1000000", "step-1000001"]
