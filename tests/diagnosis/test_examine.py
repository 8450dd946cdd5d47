"""Real training of small models, broken by causes that happen, and healthy ones: the cause is named first."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from descend.diagnosis.examine import Examination, examine, order_findings
from descend.diagnosis.signs import Finding, LayerSigns, Signs, Units
from descend.engine.run import Run
from descend.models.mlp import MLPConfig
from tests.diagnosis.patients import LENET, Sickness, broken, digits, healthy, trained

BROKEN = [
    "rate of 1, MLP",
    "rate of 1, GPT-2",
    "rate of 1e-6, LeNet",
    "biases of -8",
    "weights times 30, sigmoid",
    "six sigmoid layers",
    "weights times 8, seven layers",
    "a NaN in record 100",
    "validation copied from training",
    "a column that is the answer",
    "40 images, wide",
    "weight decay of 30",
    "one record in twenty",
]
HEALTHY = ["MLP on digits", "LeNet on digits", "GPT-2", "MLP on wine", "regression"]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    threads = torch.get_num_threads()
    yield tmp_path_factory.mktemp("clinic")
    torch.set_num_threads(threads)


def looked_at(folder: Path, case: str, seed: int) -> Examination:
    recipes = {name: recipe for name, (_, recipe) in broken(folder).items()} | healthy(folder)
    return examine(trained("case", recipes[case], folder / case.replace(" ", "-"), seed))


@pytest.mark.parametrize("case", BROKEN)
def test_the_cause_is_named_first(clinic: Path, case: str) -> None:
    found = looked_at(clinic, case, seed=BROKEN.index(case) % 3)
    assert [finding.name for finding in found.findings][:1] == [broken(clinic)[case][0]]
    for finding in found.findings:
        assert any(letter.isdigit() for letter in finding.evidence)
        assert finding.change
        assert finding.severity in ("fault", "warning")
        assert "\n" not in finding.equation


@pytest.mark.parametrize("case", HEALTHY)
def test_no_false_alarm(clinic: Path, case: str) -> None:
    found = looked_at(clinic, case, seed=HEALTHY.index(case) % 3)
    assert found.findings == ()
    assert found.notes == ()


def test_the_record_that_is_nan_is_named(clinic: Path) -> None:
    recipe = digits(MLPConfig(hidden=(8,)), sickness=Sickness(nan=7))
    parts = recipe.build()
    record = int(parts.stream.arrays["ids"][7])  # type: ignore[attr-defined]
    found = examine(trained("nan", recipe, clinic / "one-nan"))
    first = found.findings[0]
    assert first.name == "nan"
    assert f"hold NaN or infinity: {record}" in first.evidence
    assert "module 'model.layers.0'" in first.evidence
    assert f"record {record}" in first.change
    assert found.signs.fault_step > 0


def test_without_a_checkpoint_or_without_the_data(clinic: Path) -> None:
    run = trained("short", replace(digits(LENET), loop=replace(digits(LENET).loop, steps=5)), clinic / "short")
    for path in sorted(run.checkpoints.rglob("*"), reverse=True):
        path.unlink() if path.is_file() or path.is_symlink() else path.rmdir()
    assert "no checkpoint yet" in examine(run).notes[0]
    saved = run.recipe
    saved["values"]["data"]["path"] = "/nowhere"
    (run.folder / "recipe.json").write_text(json.dumps(saved))
    found = examine(Run.open(run.folder))
    assert "only its curves were read" in found.notes[0]
    assert "/nowhere" in found.notes[0]
    assert not found.signs.layers


def test_nothing_in_the_folder_changes(clinic: Path) -> None:
    recipe = digits(MLPConfig(hidden=(8,)))
    run = trained("still", replace(recipe, loop=replace(recipe.loop, steps=10)), clinic / "still")
    before = {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")}
    first, second = examine(run), examine(run)
    assert {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")} == before
    assert repr(first) == repr(second)


def test_what_a_cause_explains_is_set_aside() -> None:
    dead = (Units("model.0", "relu", 10, dead=1.0, saturated=0.0),)
    gone = tuple(LayerSigns(f"model.{i}", signal, signal, 1.0, math.nan) for i, signal in enumerate((0.0, 0.0, 1.0)))
    jumped = tuple((i, 2.3 if i != 3 else 90.0) for i in range(20))
    signs = Signs(train=jumped, units=dead, layers=gone)
    by_training = order_findings(signs, initial=Signs(train=jumped))
    assert [finding.name for finding in by_training.findings] == ["learning-rate-too-high"]
    assert by_training.follows == dict.fromkeys(("dead-relu", "vanishing-gradient"), "learning-rate-too-high")
    from_the_start = order_findings(signs, initial=signs)
    assert [finding.name for finding in from_the_start.findings] == ["dead-relu"]
    assert from_the_start.findings[0].evidence.startswith("already with the initial weights")
    assert isinstance(from_the_start.findings[0], Finding)
