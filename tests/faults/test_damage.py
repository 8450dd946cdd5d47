"""A seeded sample of `python -m proofs.damage`: whatever befalls a file, a verb works or says why not in a line."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import descend
from descend.data.images.labelled import Preprocessing
from descend.models import make_model
from descend.models.lenet import LeNetConfig
from proofs.damage import Subject, call, list_damages, make_subjects, try_damage, write_image
from proofs.file_damages import DEEP, DIGITS, of_header, of_json

SEED = 0
SAMPLE = {"table": 10, "table-model": 20}


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Subject]:
    return make_subjects(tmp_path_factory.mktemp("damage"), ("table",))


@pytest.mark.parametrize("name", SAMPLE)
def test_no_damage_ends_in_a_traceback(name: str, subjects: dict[str, Subject], tmp_path: Path) -> None:
    possible = list(list_damages(subjects[name], SEED))
    chosen = random.Random(SEED).sample(possible, SAMPLE[name])
    for file, what, damage in chosen:
        for verb, outcome in try_damage(subjects[name], file, damage, tmp_path):
            assert outcome.kind in ("done", "refused"), f"seed {SEED}, {verb}, {file}: {what}: {outcome}"


def test_a_damaged_line_of_metrics_stops_no_resume(subjects: dict[str, Subject], tmp_path: Path) -> None:
    run = Path(shutil.copytree(subjects["table"].folder, tmp_path / "run", symlinks=True))
    path = run / "metrics.jsonl"
    lines = path.read_text().splitlines()
    strange = [
        lines[0][:9],
        "[]",
        DEEP,
        DIGITS,
        '{"step": "x"}',
        '{"step": null, "loss": 1}',
        '{"step": 1, "valid": 3}',
    ]
    path.write_bytes("\n".join([*strange, *lines, *strange]).encode() + b"\n\xe9")
    assert call(f"resume {run} --quiet").kind == "done"
    found = [json.loads(text) for text in path.read_text().splitlines()]
    assert [line["step"] for line in found if "loss" in line] == [1, 2, 3, 4]


def test_a_recipe_of_other_sizes_than_the_weights_is_told(subjects: dict[str, Subject], tmp_path: Path) -> None:
    run = Path(shutil.copytree(subjects["table"].folder, tmp_path / "run", symlinks=True))
    path = run / "recipe.json"
    recipe = json.loads(path.read_text())
    recipe["values"]["model"]["hidden"] = [5, 5, 5]
    path.write_text(json.dumps(recipe))
    outcome = call(f"evaluate {run}")
    assert outcome.kind == "refused", outcome
    assert "does not hold the weights of the model that its run's recipe.json says: Missing key" in outcome.said


def test_an_intact_folder_is_accepted_by_every_verb(subjects: dict[str, Subject], tmp_path: Path) -> None:
    """Without this, refusing everything would pass."""
    for subject in subjects.values():
        for verb, outcome in try_damage(subject, "", lambda path: None, tmp_path):
            assert outcome.kind == "done", (verb, outcome)


def test_a_traceback_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_args: list[str]) -> int:
        raise RecursionError("deep")

    monkeypatch.setattr("descend.cli.main", fail)
    assert call("runs").kind == "traceback"


def test_the_damages_are_what_they_say(subjects: dict[str, Subject], tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    shutil.copy(subjects["table-model"].folder / "config.json", config)
    whole = json.loads(config.read_text())
    changed = {name: damage for name, damage in of_json(config, SEED).items() if name.endswith("left out")}
    for damage in changed.values():
        damage(config)
        assert json.loads(config.read_text()) != whole
    weights = subjects["table-model"].folder / "model.safetensors"
    assert len(of_header(weights)) > 25
    assert descend.load(weights.parent)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda saved: saved["columns"].pop(0), "makes 12 inputs, but the model beside it takes 13"),
        (lambda saved: saved["columns"][0].update(std=10**30), "is too large"),
        (lambda saved: saved["target"]["labels"].pop(), "names 2 classes, but the model beside it has 3"),
    ],
)
def test_columns_that_do_not_fit_the_model(
    change: Callable[[Any], object], said: str, subjects: dict[str, Subject], tmp_path: Path
) -> None:
    subject = subjects["table-model"]
    model = Path(shutil.copytree(subject.folder, tmp_path / "model"))
    saved = json.loads((model / "columns.json").read_text())
    change(saved)
    (model / "columns.json").write_text(json.dumps(saved))
    outcome = call(subject.verbs[0].format(model))
    assert outcome.kind == "refused", outcome
    assert said in outcome.said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": [[], *"123456789"]}, "labels[0] is a list, not a text"),
        ({"labels": True}, "labels is true, not a list"),
        ({"size": {"height": 1e308, "width": 8}}, "a side of 1e+308 pixels"),
        ({"size": -1}, "a side of -1 pixels"),
        ({"size": True}, "size and crop_size are numbers or objects"),
        ({"size": {"height": 1, "width": 1}}, "says that images are 1×1×1, which the model cannot take"),
    ],
)
def test_an_image_processor_that_does_not_fit_the_model(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    make_model(LeNetConfig(image=(1, 8, 8), kernel=3)).save_pretrained(tmp_path / "model")
    Preprocessing((1, 8, 8), (0.5,), (0.5,), tuple("0123456789")).save(tmp_path / "model")
    path = tmp_path / "model/preprocessor_config.json"
    image = write_image(tmp_path)
    assert call(f"predict {tmp_path / 'model'} {image}").kind == "done"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    outcome = call(f"predict {tmp_path / 'model'} {image}")
    assert outcome.kind == "refused", outcome
    assert said in outcome.said
