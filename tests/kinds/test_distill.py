"""A DeiT that learns from a trained run: the teacher is in the run by path and checksum, and must fit the data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors import safe_open

import descend
from descend import recipes
from descend.data.images.digits import Digits
from descend.errors import Mistake
from descend.kinds.length import with_steps
from descend.tasks.classify import Classify
from descend.tasks.distill import Distill


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("teacher") / "run"
    descend.train(with_steps(recipes.get("cnn-digits"), 4), out=where, quiet=True)
    return where


@pytest.mark.system("deit")
def test_it_trains_with_a_teacher_that_is_not_saved_again(teacher: Path, tmp_path: Path) -> None:
    recipe = replace(with_steps(recipes.get("deit-digits"), 4), teacher=str(teacher))
    assert isinstance(recipe.build().task, Distill)
    run, result = descend.train(recipe, out=tmp_path / "student", quiet=True)
    assert result.step == 4
    saved = json.loads((run.folder / "recipe.json").read_text())
    assert saved["facts"]["teacher"] == str(teacher)
    for file in run.folder.rglob("*.safetensors"):
        with safe_open(file, "pt") as tensors:
            assert not [name for name in tensors.keys() if "teacher" in name and "curves" not in name]  # noqa: SIM118
    assert set(descend.evaluate(run.folder)["test"]) == {"accuracy", "f1", "loss", "teacher"}


@pytest.mark.system("deit")
def test_without_a_teacher_it_learns_from_the_labels() -> None:
    assert isinstance(recipes.get("deit-digits").build().task, Classify)


def test_a_teacher_of_other_images_is_refused(teacher: Path, tmp_path: Path) -> None:
    recipe = recipes.get("deit-digits")
    with pytest.raises(Mistake, match=r"its image size .* differs"):
        replace(recipe, teacher=str(teacher), data=Digits(size=12)).build()
    with pytest.raises(Mistake, match="no-such"):
        replace(recipe, teacher=str(tmp_path / "no-such")).build()
