"""A resumed run ends with the very bits of one that was never stopped."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from descend.engine import checkpoint
from descend.engine.fit import fit
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.kinds.recipe import Recipe
from tests.engine.small import small, train, weights


def dropout(recipe: Recipe, rate: float = 0.2) -> Recipe:
    return replace(recipe, model=replace(recipe.model, dropout=rate))


@pytest.mark.parametrize("changes", [{}, {"ema": 0.9}, {"accumulate": 2}], ids=["plain", "ema", "accumulate"])
def test_resumed_is_uninterrupted(changes: dict[str, object], tmp_path: Path) -> None:
    recipe = dropout(small(tmp_path, **changes))
    whole = train(recipe, tmp_path / "whole")
    half = train(replace(recipe, loop=replace(recipe.loop, steps=12)), tmp_path / "half")
    for name in checkpoint.names(half.checkpoints)[1:]:  # as if the process had died after an earlier checkpoint
        os.rename(half.checkpoints / name, tmp_path / name)
    train(recipe, tmp_path / "half", resume=True)
    assert weights(half) == weights(whole)
    strip = lambda lines: [{k: v for k, v in line.items() if k not in ("time", "rate")} for line in lines]
    assert strip(half.lines()) == strip(whole.lines())


def test_a_damaged_newest_checkpoint_costs_only_its_steps(tmp_path: Path) -> None:
    recipe = dropout(small(tmp_path))
    whole = train(recipe, tmp_path / "whole")
    again = train(recipe, tmp_path / "again")
    newest = again.checkpoints / checkpoint.names(again.checkpoints)[-1]
    (newest / "state.safetensors").write_bytes(b"cut short")
    train(recipe, tmp_path / "again", resume=True)
    assert weights(again) == weights(whole)


def test_a_run_that_has_ended_stays_as_it_is(tmp_path: Path) -> None:
    recipe = small(tmp_path)
    run = train(recipe, tmp_path / "run")
    before = weights(run)
    result = fit(recipe.build(), recipe.loop, recipe.schedule, Run(run.folder), Quiet(), resume=True)
    assert (result.reason, weights(run)) == ("finished", before)


def attempt(recipe: Recipe, folder: Path) -> None:
    """What a killed process was doing: train from the start, or resume when there is a checkpoint."""
    begun = bool(checkpoint.names(folder / "checkpoints"))
    run = Run(folder) if (folder / "recipe.json").exists() else Run.create(folder, {"name": "small"})
    fit(recipe.build(), recipe.loop, recipe.schedule, run, Quiet(), resume=begun)


def test_kill_at_twenty_random_moments(tmp_path: Path) -> None:
    """Runs are killed and resumed until they end; each that ends must have the bits of the one never stopped."""
    recipe = dropout(small(tmp_path, steps=150, eval_every=40, save_every=2))
    whole = train(recipe, tmp_path / "whole")
    chance, kills, ended = random.Random(0), 0, 0
    fork = multiprocessing.get_context("fork")  # a real process each time, without importing torch again
    while kills < 20 or not ended:
        process = fork.Process(target=attempt, args=(recipe, tmp_path / f"killed-{ended}"))
        process.start()
        if kills < 20:
            time.sleep(chance.uniform(0.05, 0.5))
            if process.is_alive():
                os.kill(process.pid or 0, signal.SIGKILL)
                kills += 1
        process.join()
        if process.exitcode == 0:
            assert weights(Run(tmp_path / f"killed-{ended}")) == weights(whole)
            ended += 1
        else:
            assert process.exitcode == -signal.SIGKILL
    assert kills == 20


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_first(number: signal.Signals, tmp_path: Path) -> None:
    recipe = small(tmp_path, steps=2000, eval_every=1000, save_every=1000)
    run = Run.create(tmp_path / "run", {"name": "small"})
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), number))
    timer.start()
    result = fit(recipe.build(), recipe.loop, recipe.schedule, run, Quiet())
    timer.join()
    assert result.reason == number.name
    assert 0 < result.step < 2000
    _, step, _ = checkpoint.newest(run.checkpoints, lambda _: None)
    assert step == result.step


def test_patience_and_budget_end_a_run(tmp_path: Path) -> None:
    recipe = small(tmp_path, steps=500, eval_every=2, patience=2)
    stale = replace(recipe, schedule=lambda step, steps: 0.0)  # nothing is learned, so nothing improves
    run = train(stale, tmp_path / "stale")
    assert run.lines()[-1] == {"step": 6, "time": run.lines()[-1]["time"], "event": "patience"}
    run = Run.create(tmp_path / "short", {"name": "small"})
    long = small(tmp_path, steps=100_000, eval_every=100_000, save_every=100_000)
    result = fit(long.build(), long.loop, long.schedule, run, Quiet(), budget=0.3)
    assert result.reason == "budget"
    assert result.seconds < 5


def test_two_processes_cannot_train_in_one_folder(tmp_path: Path) -> None:
    from descend.errors import Mistake

    run = Run.create(tmp_path / "run", {"name": "small"})
    with run.locked(), pytest.raises(Mistake, match="another process"), Run(run.folder).locked():
        pass


def test_a_half_written_metrics_line_is_left_out(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {"name": "small"})
    run.log({"step": 1, "loss": 2.0})
    with run.metrics_file.open("a") as file:
        file.write(json.dumps({"step": 2})[:5])
    assert [line["step"] for line in run.lines()] == [1]
    run.close()
