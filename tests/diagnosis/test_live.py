"""The checks while a run is training: said once, logged, and next to free."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from descend.diagnosis.live import Watcher, thin
from descend.engine import checkpoint
from descend.engine.fit import fit
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.engine.state import pack, unpack
from descend.report import write_report
from descend.report.history import read_history
from descend.verbs.start import continue_run, describe, run_recipe
from tests.diagnosis.patients import LOOP, WIDE, Plain, digits
from tests.engine.small import small, train

LOOP_VALUES = {"steps": 100, "eval_every": 10}
RECIPE: dict[str, Any] = {"name": "mine", "values": {"optim": {"lr": 0.1}, "loop": LOOP_VALUES}}


def show(watch: Watcher, step: int, metrics: dict[str, float], scores: dict[str, float]) -> list[dict[str, str]]:
    """Ten steps with the same metrics, and the evaluation after them."""
    for i in range(step - 9, step + 1):
        watch.observe(i, metrics)
    return watch(step, scores)


class Said(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def message(self, text: str) -> None:
        self.lines.append(text)


def test_a_rising_loss_is_told_once() -> None:
    watch, told = Watcher(RECIPE), []
    for step in range(10, 101, 10):
        told += show(watch, step, {"loss": 1.0 + step / 10}, {"loss": 1.0 + step / 10})
    assert [warning["finding"] for warning in told] == ["learning-rate-too-high"]
    assert "--optim.lr 0.01" in told[0]["said"]


def test_overfitting_and_standing_still_are_told() -> None:
    for valid, trained, name in (
        (lambda e: 1.0 + 0.2 * e, lambda e: 1.0 / (1 + e), "overfit"),
        (lambda e: 2.0, lambda e: 2.0, "no-progress"),
        (lambda e: 1.0 / (1 + e), lambda e: 1.0 / (1 + e), None),
    ):
        watch, told = Watcher(RECIPE), []
        for e in range(1, 11):
            told += show(watch, 10 * e, {"loss": trained(e)}, {"loss": valid(e)})
        assert [warning["finding"] for warning in told] == ([name] if name else [])


def test_gradient_norms_where_they_are_at_hand() -> None:
    watch, told = Watcher(RECIPE), []
    for e in range(1, 11):
        told += show(watch, 10 * e, {"loss": 2.0 / e, "grad_norm": 10.0**e}, {"loss": 2.0 / e})
    assert [warning["finding"] for warning in told] == ["exploding-gradient"]


def test_a_reward_is_not_a_loss() -> None:
    watch = Watcher(RECIPE)
    assert not any(show(watch, 10 * e, {"loss": float(e)}, {"return": 1.0}) for e in range(1, 11))


def test_a_policy_that_moves_too_far_is_told_once() -> None:
    watch, told = Watcher({"name": "ppo", "values": {"optim": {"lr": 0.01}, "loop": LOOP_VALUES}}), []
    for e in range(1, 11):
        told += show(watch, 10 * e, {"loss": 1.0, "approximate_kl": 0.2}, {"return": 1.0})
    assert [warning["finding"] for warning in told] == ["kl-too-large"]
    assert "--optim.lr 0.003" in told[0]["said"]


def test_what_was_told_before_a_resume_is_not_told_again() -> None:
    lines = [{"step": e, "loss": float(e)} for e in range(1, 40)] + [{"step": 40, "valid": {"loss": 40.0}}]
    watch, again = Watcher(RECIPE), Watcher(RECIPE)
    watch.restore(None, lines)
    assert show(watch, 50, {"loss": 50.0}, {"loss": 50.0})
    again.restore(None, [*lines, {"step": 40, "event": "warning", "finding": "learning-rate-too-high"}])
    assert not show(again, 50, {"loss": 50.0}, {"loss": 50.0})


def test_means_of_pieces() -> None:
    watch = Watcher(RECIPE)  # pieces of 3, a quarter of 10 rounded up
    for step in range(1, 9):
        watch.observe(step, {"loss": float(step)})
    watch(8, {"loss": 1.0})
    assert watch.train == [(1, 1.0), (3, 2.0), (6, 5.0), (8, 7.5)]
    assert not watch.pieces


@pytest.mark.parametrize("stop", [7, 20, 35, 50, 64])
def test_what_it_remembers_is_state(stop: int) -> None:
    """Through the files of a checkpoint, at any step: the same curves and the same words as without a stop."""
    metrics = lambda step: {"loss": 3.0 + (step % 7) / 3 + step / 20, "grad_norm": step**0.5, "kl": 1.0 / step}
    watches = Watcher(RECIPE), Watcher(RECIPE)
    told: tuple[list[dict[str, str]], ...] = [], []
    for step in range(1, 71):
        for watch, said in zip(watches, told, strict=True):
            watch.observe(step, metrics(step))
            said += watch(step, {"loss": 3.0 + step / 10}) if step % 10 == 0 else []
        if step == stop:
            tensors: dict[str, Tensor] = {}
            tree = json.loads(json.dumps(pack(watches[1].state_dict(), tensors)))
            watches = watches[0], Watcher(RECIPE)
            watches[1].restore(unpack(tree, tensors), [])
    assert told[0] == told[1] != []
    assert watches[0].signs() == watches[1].signs()


def test_a_resume_forgets_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    """A run of the last release: its watcher begins with the lines up to the checkpoint, not with those after it."""
    recipe = small(tmp_path)
    run = train(recipe, tmp_path / "run")
    for name in checkpoint.names(run.checkpoints)[1:]:
        shutil.rmtree(run.checkpoints / name)
    seen: list[int] = []

    class Restored(Watcher):
        def restore(self, state: dict[str, Any] | None, lines: list[dict[str, Any]]) -> None:
            super().restore(state, lines)
            seen.append(self.train[-1][0])

    watch = Restored(RECIPE)
    fit(recipe.build(), recipe.loop, recipe.schedule, Run(run.folder), Quiet(), resume=True, watch=watch)
    assert seen == [9]


def test_a_long_run_is_remembered_in_short() -> None:
    points = [(i, float(i)) for i in range(1, 402)]
    kept = thin(points)
    assert len(kept) == 201
    assert kept[:3] == [(1, 1.0), (3, 2.5), (5, 4.5)]
    assert thin(points[:400]) == points[:400]
    assert thin([(0, 0.0), *points])[1:] == kept[1:]


def test_a_run_warns_logs_and_reports(tmp_path: Path) -> None:
    recipe = digits(WIDE, lr=1.0)
    parts, said = recipe.build(), Said()
    Run.create(tmp_path / "run", describe("mine", recipe, parts, threads=1))
    run = Plain(tmp_path / "run")
    fit(parts, recipe.loop, recipe.schedule, run, said, watch=Watcher(run.recipe))
    assert len(said.lines) == len({line.split(":")[0] for line in said.lines})
    assert any(line.startswith("learning-rate-too-high: the loss") for line in said.lines)
    history = read_history(run.folder)
    assert [line["said"] for line in history.events if line["event"] == "warning"] == said.lines
    assert history.state == "finished"
    assert "learning-rate-too-high" in write_report(run.folder, []).read_text(encoding="utf-8")


def test_train_and_resume_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watch(self: Watcher, step: int, scores: object) -> list[dict[str, str]]:
        seen.append(step)
        return []

    monkeypatch.setattr(Watcher, "__call__", watch)
    recipe = replace(digits(WIDE), loop=replace(LOOP, steps=6, eval_every=3, save_every=3))
    run, _ = run_recipe("mine", recipe, tmp_path / "run", quiet=True)
    assert seen == [3, 6]
    continue_run("mine", replace(recipe, loop=replace(recipe.loop, steps=9)), run, threads=1, quiet=True)
    assert seen == [3, 6, 9]


def test_it_costs_little(tmp_path: Path) -> None:
    """The time of the watcher in a tiny run that evaluates often, against the whole run: about a hundredth."""
    recipe = digits(WIDE)
    parts, spent = recipe.build(), 0.0
    Run.create(tmp_path / "run", describe("mine", recipe, parts, threads=1))
    run = Plain(tmp_path / "run")

    class Timed(Watcher):
        def observe(self, step: int, metrics: dict[str, float]) -> None:
            if len(self.seen) + 1 < self.size:  # only kept: to look at the clock would cost more
                super().observe(step, metrics)
                return
            with timed():
                super().observe(step, metrics)

        def __call__(self, step: int, scores: dict[str, float]) -> list[dict[str, str]]:
            with timed():
                return super().__call__(step, scores)

        def state_dict(self) -> dict[str, Any]:
            with timed():
                return super().state_dict()

    @contextmanager
    def timed() -> Iterator[None]:
        nonlocal spent
        began = time.thread_time()  # not that of the thread which writes a checkpoint
        yield
        spent += time.thread_time() - began

    began = time.process_time()
    fit(parts, recipe.loop, recipe.schedule, run, Quiet(), watch=Timed(run.recipe))
    assert 0 < spent < 0.03 * (time.process_time() - began)
