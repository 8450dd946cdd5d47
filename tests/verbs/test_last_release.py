"""Runs that the last release made: every verb still opens them, and they are continued to the same losses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend.errors import Mistake
from descend.kinds.saved import from_json, to_json
from descend.verbs.tune import write_study_file
from tests.close import close

FOLDER = Path(__file__).parent / "data" / "last_release"
RUNS = sorted(path.parent.name for path in FOLDER.glob("*/recipe.json"))


@pytest.fixture
def copied(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of a run that may be written to."""
    return Path(shutil.copytree(FOLDER / request.param, tmp_path / request.param, symlinks=True))


def losses(run: Path) -> dict[int, dict[str, float]]:
    """Step -> the losses of its training line."""
    lines: list[dict[str, Any]] = [json.loads(text) for text in (run / "metrics.jsonl").read_text().splitlines()]
    return {
        line["step"]: {name: value for name, value in line.items() if name.startswith("loss")}
        for line in lines
        if "lr" in line
    }


def test_each_kind_of_state_is_there() -> None:
    assert RUNS == ["cnn-digits", "gan-mixture", "gpt2-pydoc", "mlp-wine", "ppo-cartpole"]


@pytest.mark.parametrize("copied", RUNS, indirect=True)
def test_it_is_resumed_as_if_nothing_had_changed(copied: Path) -> None:
    expected = losses(copied)
    assert list(expected) == [1, 2, 3, 4, 5, 6]  # the checkpoint is that of step 3
    run, result = descend.resume(copied, quiet=True)
    assert (result.step, result.reason) == (6, "finished")
    found = losses(run.folder)
    for step, values in expected.items():
        for name, value in values.items():
            close(torch.tensor(found[step][name]), torch.tensor(value))


@pytest.mark.parametrize("copied", RUNS, indirect=True)
def test_it_is_evaluated_and_loaded(copied: Path) -> None:
    scores = descend.evaluate(copied)
    assert scores["checkpoint"] == "step-000003"
    assert scores["valid"]
    assert not descend.load(copied).training


@pytest.mark.parametrize("copied", ["gpt2-pydoc"], indirect=True)
def test_it_writes(copied: Path) -> None:
    text = descend.generate(copied, "The for statement", tokens=5)
    assert text.startswith("The for statement")
    assert len(text) > len("The for statement")


@pytest.mark.parametrize("copied", ["mlp-wine"], indirect=True)
def test_it_answers_about_a_table(copied: Path, tmp_path: Path) -> None:
    columns = json.loads((copied / "checkpoints" / "last" / "columns.json").read_text())
    names = [column["name"] for column in columns["columns"]]
    (tmp_path / "new.csv").write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    (answer,) = descend.predict(copied, tmp_path / "new.csv")
    assert 1 / 3 <= answer["probability"] <= 1


def test_a_study_of_the_last_release_is_taken_up(tmp_path: Path) -> None:
    """It stored its recipe by module paths; the recipe is the same, so the command is too."""
    values = json.loads((FOLDER / "recipes.json").read_text())["lenet-digits"]
    old = {"name": "lenet-digits", "search": ["batch=8,16"], "sampler": "tpe", "pruner": "median", "values": values}
    (tmp_path / "study.json").write_text(json.dumps({**old, "started": "then", "descend": "0.1.0", "trials": 1}))
    asked = {**old, "values": to_json(from_json(values)), "started": "now", "descend": "9", "trials": 2}
    assert asked["values"] != values
    write_study_file(tmp_path, asked, replace=False)
    written = json.loads((tmp_path / "study.json").read_text())
    assert (written["started"], written["trials"], written["values"]) == ("then", 2, asked["values"])
    with pytest.raises(Mistake, match="a study with a different recipe"):
        write_study_file(tmp_path, {**asked, "values": {**asked["values"], "about": "another"}}, replace=False)
