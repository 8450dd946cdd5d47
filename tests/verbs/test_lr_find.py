"""lr-find as a user calls it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import descend
from descend.cli import main
from descend.optim.rules import AdamW
from tests.engine.small import small, text_file
from tests.verbs.test_train import WIDTHS

pytestmark = pytest.mark.system("learning-rate-finder")


def flags(folder: Path) -> list[str]:
    text = ["--data.path", str(text_file(folder)), "--data.tokenizer", "characters"]
    return ["lr-find", "gpt2-pydoc", *WIDTHS, *text, "--batch", "4", "--threads", "1", "--points", "30"]


def test_a_curve_a_suggestion_and_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*flags(tmp_path), "--out", str(tmp_path / "curve.html")]) == 0
    out = capsys.readouterr().out
    assert "^" in out
    assert "suggested: --optim.lr" in out
    assert "--model.width 16" in out  # the command keeps the flags
    assert "smoothed loss" in (tmp_path / "curve.html").read_text()
    assert [p.name for p in tmp_path.iterdir() if p.suffix not in (".txt", ".html")] == []  # no run is left


def test_json_and_repeatable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = []
    for _ in range(2):
        assert main([*flags(tmp_path), "--json", "--out", str(tmp_path / "curve.svg")]) == 0
        seen.append(json.loads(capsys.readouterr().out))
    assert seen[0] == seen[1]
    found = seen[0]
    assert found["rates"][0] == pytest.approx(1e-6)
    assert len(found["rates"]) == len(found["losses"]) == len(found["smoothed"])
    assert found["suggestion"] == min(found["steepest"], found["turn"] / 10)
    assert (tmp_path / "curve.svg").exists()


def test_the_suggestion_trains_well(tmp_path: Path) -> None:
    """A rate that the finder suggests lowers the loss more than one ten thousand times smaller."""
    recipe = small(tmp_path)
    found = descend.lr_find(recipe, points=40)
    assert found.suggestion is not None
    assert 1e-4 < found.suggestion < 0.3
    ends = []
    for lr in (found.suggestion, found.suggestion / 1e4):
        run, result = descend.train(replace(recipe, optim=AdamW(lr=lr)), out=tmp_path / f"{lr}", quiet=True)
        assert run.folder.exists()
        ends.append(result.best or 0.0)
    assert ends[0] < ends[1] - 0.05


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["lr-find", "lenet-digit"], "Did you mean 'lenet-digits'?"),
        (["lr-find", "--low", "1"], "name the recipe first"),
        (["lr-find", "lenet-digits", "--lw", "1"], "unknown flag --lw"),
        (["lr-find", "lenet-digits", "--out", "x.pdf"], ".png, .svg or .html"),
        (["lr-find", "gan-mixture"], "play against each other"),
        (["lr-find", "lenet-digits", "--low", "1", "--high", "0.1"], "--high above --low"),
    ],
)
def test_mistakes(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lr-find"]) == 0
    assert "usage: descend lr-find RECIPE" in capsys.readouterr().out
