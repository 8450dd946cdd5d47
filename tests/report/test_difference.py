"""Two histories side by side."""

from __future__ import annotations

import json
import math
from pathlib import Path

from descend.report.difference import compare_flags, count_shared, find_partings, flatten_values
from descend.report.history import History, read_history


def write_run(folder: Path, lr: float, losses: list[float]) -> History:
    folder.mkdir(parents=True)
    values = {"class": "LearnTable", "optim": {"class": "Adam", "lr": lr}, "loop": {"steps": len(losses)}}
    (folder / "recipe.json").write_text(json.dumps({"name": "mine", "values": values}))
    lines = [{"step": i, "loss": loss, "time": i * lr, "rate": lr} for i, loss in enumerate(losses, 1)]
    lines += [{"step": 2, "valid": {"accuracy": 0.5}}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_history(folder)


def test_flags_that_differ(tmp_path: Path) -> None:
    one, other = write_run(tmp_path / "a", 0.1, [1.0, 0.5]), write_run(tmp_path / "b", 0.2, [1.0, 0.5, 0.2])
    assert compare_flags([one, other]) == {"optim.lr": [0.1, 0.2], "steps": [2, 3]}
    assert compare_flags([one, one]) == {}


def test_the_first_step_that_is_not_the_same(tmp_path: Path) -> None:
    one = write_run(tmp_path / "a", 0.1, [1.0, 0.5, 0.4])
    other = write_run(tmp_path / "b", 0.1, [1.0, 0.5, 0.4000001])
    (parting,) = find_partings(one, other)
    assert parting == ("loss", 3, 0.4, 0.4000001)
    assert count_shared(one, other) == 3


def test_times_are_the_machines_own_and_nan_is_nan(tmp_path: Path) -> None:
    one, other = write_run(tmp_path / "a", 0.1, [1.0, math.nan]), write_run(tmp_path / "b", 0.2, [1.0, math.nan])
    assert find_partings(one, other) == []


def test_classes_are_values_too() -> None:
    found = flatten_values({"optim": {"class": "Adam", "lr": 1.0}, "data": {"warp": {"class": "Warp", "turn": 2}}})
    assert found == {"optim": "Adam", "optim.lr": 1.0, "data.warp": "Warp", "data.warp.turn": 2}
