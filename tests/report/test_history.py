from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from descend.errors import Mistake
from descend.report.history import read_history
from tests.close import close
from tests.report.synthetic import make_run


def test_what_the_files_say(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    history = read_history(tmp_path / "run")
    assert (history.name, history.step, history.steps, history.unit) == ("gpt2-pydoc", 200, 200, "tokens")
    assert history.best is not None
    assert history.best[0] == 150  # the smallest validation loss, not the last
    close(history.seconds, 20.0)
    assert history.losses == ["loss"]
    assert history.state == "finished"


def test_the_best_follows_what_is_watched(tmp_path: Path) -> None:
    make_run(tmp_path / "run", watch="max accuracy")
    best = read_history(tmp_path / "run").best
    assert best is not None
    assert best[0] == 200


def test_a_score_that_is_not_finite_is_never_the_best(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 210, "time": 21.0, "valid": {"loss": NaN}}\n')
        file.write('{"step": 220, "time": 22.0, "valid": {"loss": -Infinity}}\n')
    best = read_history(tmp_path / "run").best
    assert best is not None
    assert best[0] == 150


@pytest.mark.parametrize(
    ("event", "state"),
    [("finished", "finished"), ("patience", "finished"), ("failed", "failed"), ("SIGINT", "interrupted"), ("", None)],
)
def test_states(tmp_path: Path, event: str, state: str | None) -> None:
    run = tmp_path / "run"
    make_run(run, done=80, event=event)
    long_ago = time.time() - 3600
    assert read_history(run).state == (state or "running") or event == "SIGINT"  # it wrote a moment ago
    for path in run.iterdir():
        os.utime(path, (long_ago, long_ago))
    assert read_history(run).state == (state or "interrupted")  # a killed run leaves no event


def test_a_lock_that_is_held_means_running(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, done=80, event="SIGTERM")
    (run / "lock").write_text("1")
    assert read_history(run).state == "interrupted"
    with (run / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert read_history(run).state == "running"
    assert read_history(run).state == "interrupted"


def test_damaged_lines_are_kept_apart(tmp_path: Path) -> None:
    run = tmp_path / "run"
    lines = make_run(run)
    text = (run / "metrics.jsonl").read_text().splitlines()
    text[10:10] = ['{"step": 11, "lo', "3", '{"loss": 1.0}']
    (run / "metrics.jsonl").write_text("\n".join(text))
    history = read_history(run)
    assert [n for n, _ in history.damaged] == [11, 12, 13]
    assert len(history.train) + len(history.valid) + len(history.events) == len(lines)


def test_two_players(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, event="")
    line = {"step": 201, "time": 20.1, "loss_d": 0.5, "loss_g": 1.5}
    (run / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    assert read_history(run).losses == ["loss_d", "loss_g"]


def test_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"not a run folder \(no recipe.json\)"):
        read_history(tmp_path)
    (tmp_path / "recipe.json").write_text('{"name": ')
    with pytest.raises(Mistake, match=r"recipe.json is not valid JSON"):
        read_history(tmp_path)
