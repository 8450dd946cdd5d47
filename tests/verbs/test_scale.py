"""scale as a user calls it: runs in a folder, the page, going on after an interruption, mistakes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import descend
from descend.cli import main
from descend.engine.run import Run
from descend.verbs import scale as verb
from tests.engine.small import text_file
from tests.verbs.test_train import WIDTHS

SLUG = "scaling-law-sweep"


def flags(folder: Path, out: Path, *more: str) -> list[str]:
    text = ["--data.path", str(text_file(folder)), "--data.tokenizer", "characters"]
    length = ["--steps", "60", "--batch", "4", "--threads", "1", "--optim.lr", "1e-2", "--quiet"]
    return ["scale", "gpt2-pydoc", *WIDTHS, *text, *length, "--sizes", "3", "--span", "4", "--out", str(out), *more]


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of the text, and a finished ladder."""
    folder = tmp_path_factory.mktemp("scale")
    assert main(flags(folder, folder / "ladder")) == 0
    return folder, folder / "ladder"


@pytest.mark.system(SLUG, "own-data")
def test_every_size_is_a_run_and_the_answer_has_an_interval(
    ladder: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = ladder
    capsys.readouterr()
    assert main(flags(folder, out, "--json")) == 0  # the same command again trains nothing
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["state"] == "finished"
    assert [r["values"]["model.width"] for r in found["rungs"]] == [4, 8, 16]
    for rung in found["rungs"]:
        run = Run.open(out / rung["run"])
        losses = [v for v in run.metrics()["valid.loss"] if v is not None]
        assert rung["loss"] == min(losses)
        assert run.lines()[-1]["step"] == rung["steps"]
    assert found["prediction"]["interval"][0] <= found["prediction"]["interval"][1]
    assert any("below two decades" in said for said in found["warnings"])
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Scaling law" in page
    assert page.count("<svg") == 1
    assert "below two decades" in page
    assert main(flags(folder, out, "--times", "5")) == 0
    said = capsys.readouterr().out
    assert "5x the compute: loss" in said
    assert "exponent" in said


@pytest.mark.system(SLUG, "own-data")
def test_it_goes_on_where_it_stopped(
    ladder: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second size is lost, the third half trained: only these two are trained, the latter from its checkpoint."""
    folder, out = ladder
    shutil.copytree(out, tmp_path / "copy", symlinks=True)
    copy = tmp_path / "copy"
    before = {i: Run(copy / "sizes" / str(i)).metrics()["valid.loss"][-1] for i in range(3)}
    shutil.rmtree(copy / "sizes" / "1")
    run = Run.open(copy / "sizes" / "2")
    half = sorted(run.checkpoints.glob("step-*"), key=lambda p: int(p.name.partition("-")[2]))[1:]
    for path in half:
        shutil.rmtree(path)
    kept = int(next(run.checkpoints.glob("step-*")).name.partition("-")[2])
    run.forget_after(kept)
    calls: list[str] = []
    for name in ("run_recipe", "continue_run"):
        real = getattr(verb, name)
        monkeypatch.setattr(verb, name, lambda *a, real=real, name=name, **k: (calls.append(name), real(*a, **k))[1])
    capsys.readouterr()
    assert main(flags(folder, copy, "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert calls == ["run_recipe", "continue_run"]
    assert found["state"] == "finished"
    assert {i: Run(copy / "sizes" / str(i)).metrics()["valid.loss"][-1] for i in range(3)} == before


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--sizes", "4"], "holds a ladder with a different sizes"),
        (["--seed", "5"], "holds a ladder with a different recipe"),
        (["--times", "0"], "--times 0"),
        (["--budget", "soon"], "--budget"),
    ],
)
def test_mistakes_are_one_line(
    ladder: tuple[Path, Path], more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = ladder
    capsys.readouterr()
    assert main(flags(folder, out, *more)) == 2
    assert said in capsys.readouterr().err


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine", encoding="utf-8")
    assert main(flags(tmp_path, tmp_path / "other", "--replace")) == 2
    assert "not a ladder" in capsys.readouterr().err
    assert main(["scale"]) == 0
    assert "usage: descend scale" in capsys.readouterr().out
    assert main(["scale", "--sizes", "3"]) == 2


def test_a_score_that_rises_is_taken_as_what_is_missing(tmp_path: Path) -> None:
    """Digits have a validation loss; without one, accuracy counts as 1 − accuracy."""
    run = Run(tmp_path)
    run.log({"step": 1, "valid": {"accuracy": 0.7}})
    run.log({"step": 2, "valid": {"accuracy": 0.9}})
    recipe = descend.recipes.get("mlp-digits")  # type: ignore[attr-defined]
    name, value = verb.read_loss(run, recipe)
    assert name == "1 - accuracy"
    assert value == pytest.approx(0.1)
