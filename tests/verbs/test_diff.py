"""descend diff."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from descend.cli import main
from descend.verbs.diff import diff
from tests.report.test_difference import write_run


def test_two_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "a", 0.1, [1.0, 0.5])
    write_run(tmp_path / "b", 0.2, [1.0, 0.4])
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    said = capsys.readouterr().out
    assert "optim.lr" in said
    assert "The curves part at step 2:" in said
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == diff(tmp_path / "a", tmp_path / "b")


def test_a_run_beside_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "a", 0.1, [1.0, 0.5])
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "a")]) == 0
    said = capsys.readouterr().out
    assert "The same values." in said
    assert "the same, to the bit, at all 2 steps" in said


def test_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(tmp_path), str(tmp_path)]) == 2
    assert "is not a run folder" in capsys.readouterr().err
