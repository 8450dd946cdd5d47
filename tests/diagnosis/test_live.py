"""The checks while a run is training: said once, logged, and next to free."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from descend.diagnosis.live import Watcher, means, thin
from descend.engine.fit import fit
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.report import write_report
from descend.report.history import read_history
from descend.verbs.start import continue_run, describe, run_recipe
from tests.diagnosis.patients import LOOP, WIDE, Plain, digits

RECIPE: dict[str, Any] = {"name": "mine", "values": {"optim": {"lr": 0.1}, "loop": {"steps": 100}}}


class Said(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def message(self, text: str) -> None:
        self.lines.append(text)


def test_a_rising_loss_is_told_once() -> None:
    watch, told = Watcher(RECIPE, []), []
    for step in range(10, 101, 10):
        told += watch(step, [{"loss": 1.0 + step / 10}] * 10, {"loss": 1.0 + step / 10})
    assert [warning["finding"] for warning in told] == ["learning-rate-too-high"]
    assert "--optim.lr 0.01" in told[0]["said"]


def test_overfitting_and_standing_still_are_told() -> None:
    for valid, train, name in (
        (lambda e: 1.0 + 0.2 * e, lambda e: 1.0 / (1 + e), "overfit"),
        (lambda e: 2.0, lambda e: 2.0, "no-progress"),
        (lambda e: 1.0 / (1 + e), lambda e: 1.0 / (1 + e), None),
    ):
        watch, told = Watcher(RECIPE, []), []
        for e in range(1, 11):
            told += watch(10 * e, [{"loss": train(e)}] * 10, {"loss": valid(e)})
        assert [warning["finding"] for warning in told] == ([name] if name else [])


def test_gradient_norms_where_they_are_at_hand() -> None:
    watch, told = Watcher(RECIPE, []), []
    for e in range(1, 11):
        told += watch(10 * e, [{"loss": 2.0 / e, "grad_norm": 10.0**e}] * 10, {"loss": 2.0 / e})
    assert [warning["finding"] for warning in told] == ["exploding-gradient"]


def test_a_reward_is_not_a_loss() -> None:
    watch = Watcher(RECIPE, [])
    assert not any(watch(10 * e, [{"loss": float(e)}] * 10, {"return": 1.0}) for e in range(1, 11))


def test_a_policy_that_moves_too_far_is_told_once() -> None:
    watch, told = Watcher({"name": "ppo", "values": {"optim": {"lr": 0.01}, "loop": {"steps": 100}}}, []), []
    for e in range(1, 11):
        told += watch(10 * e, [{"loss": 1.0, "approximate_kl": 0.2}] * 10, {"return": 1.0})
    assert [warning["finding"] for warning in told] == ["kl-too-large"]
    assert "--optim.lr 0.003" in told[0]["said"]


def test_what_was_told_before_a_resume_is_not_told_again() -> None:
    lines = [{"step": e, "loss": float(e)} for e in range(1, 40)] + [{"step": 40, "valid": {"loss": 40.0}}]
    assert Watcher(RECIPE, lines)(50, [{"loss": 50.0}] * 10, {"loss": 50.0})
    lines.append({"step": 40, "event": "warning", "finding": "learning-rate-too-high"})
    assert not Watcher(RECIPE, lines)(50, [{"loss": 50.0}] * 10, {"loss": 50.0})


def test_means_of_pieces() -> None:
    assert means(10, [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]) == [(6, 2.0), (8, 6.0), (10, 10.0)]
    assert means(10, []) == []


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
    fit(parts, recipe.loop, recipe.schedule, run, said, watch=Watcher(run.recipe, []))
    assert len(said.lines) == len({line.split(":")[0] for line in said.lines})
    assert any(line.startswith("learning-rate-too-high: the loss") for line in said.lines)
    history = read_history(run.folder)
    assert [line["said"] for line in history.events if line["event"] == "warning"] == said.lines
    assert history.state == "finished"
    assert "learning-rate-too-high" in write_report(run.folder, []).read_text(encoding="utf-8")


def test_train_and_resume_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watch(self: Watcher, step: int, metrics: object, scores: object) -> list[dict[str, str]]:
        seen.append(step)
        return []

    monkeypatch.setattr(Watcher, "__call__", watch)
    monkeypatch.setattr(Run, "board", Plain.board)
    recipe = replace(digits(WIDE), loop=replace(LOOP, steps=6, eval_every=3, save_every=3))
    run, _ = run_recipe("mine", recipe, tmp_path / "run", quiet=True)
    assert seen == [3, 6]
    continue_run("mine", replace(recipe, loop=replace(recipe.loop, steps=9)), run, threads=1, quiet=True)
    assert seen == [3, 6, 9]


def test_it_costs_less_than_a_hundredth(tmp_path: Path) -> None:
    """The time of the watcher in a run that evaluates often, against the whole run."""
    recipe = digits(WIDE)
    parts, spent = recipe.build(), 0.0
    Run.create(tmp_path / "run", describe("mine", recipe, parts, threads=1))
    run = Plain(tmp_path / "run")
    watch = Watcher(run.recipe, [])

    def timed(step: int, seen: list[dict[str, float]], scores: dict[str, float]) -> list[dict[str, str]]:
        nonlocal spent
        began = time.process_time()
        said = watch(step, seen, scores)
        spent += time.process_time() - began
        return said

    began = time.process_time()
    fit(parts, recipe.loop, recipe.schedule, run, Quiet(), watch=timed)
    assert 0 < spent < 0.01 * (time.process_time() - began)
