from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import descend
from descend import cli
from descend.errors import Mistake
from tests.report.synthetic import make_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four runs on both levels; the last is the newest."""
    make_run(tmp_path / "runs" / "demo")
    make_run(tmp_path / "runs" / "gpt2-pydoc" / "one", done=80, event="SIGINT")
    make_run(tmp_path / "runs" / "gpt2-pydoc" / "two", done=80, event="failed")
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "recipe.json").write_text('{"name"')
    (tmp_path / "runs" / "gpt2-pydoc" / "one" / "lock").write_text("")
    (tmp_path / "runs" / "notes").mkdir()
    for i, name in enumerate(("demo", "gpt2-pydoc/one", "gpt2-pydoc/two", "broken")):
        os.utime(tmp_path / "runs" / name / "recipe.json", (1e9 + i, 1e9 + i))
    return tmp_path / "runs"


def test_the_newest_comes_first(folder: Path) -> None:
    found = descend.runs(folder)
    assert [Path(run["run"]).name for run in found] == ["broken", "two", "one", "demo"]
    assert [run["state"] for run in found] == ["damaged", "failed", "interrupted", "finished"]
    demo = found[-1]
    assert (demo["step"], demo["steps"], demo["recipe"], demo["score"]) == (200, 200, "gpt2-pydoc", "loss")
    assert 2 < demo["best"] < 3
    assert "recipe.json is not valid JSON" in found[0]["fault"]


def test_a_run_folder_is_listed_itself(folder: Path) -> None:
    assert [run["run"] for run in descend.runs(folder / "demo")] == [str(folder / "demo")]


def test_the_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["runs", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["run", "recipe", "step", "best", "test", "loss", "time", "state"]
    assert len(lines) == 5
    assert lines[3].split()[2:] == ["80/200", "loss", "3.533", "2.677", "0:08", "interrupted"]
    assert not set("\x1b│┃━─") & set("".join(lines))


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["runs", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == descend.runs(folder)


def test_colour_in_a_terminal_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    cli.main(["runs", str(folder)])
    assert "\x1b[32mfinished\x1b[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    cli.main(["runs", str(folder)])
    assert "\x1b" not in capsys.readouterr().out


def test_nothing_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["runs"]) == 0
    assert "No runs in runs yet" in capsys.readouterr().out
    with pytest.raises(Mistake, match="elsewhere is not a folder"):
        descend.runs("elsewhere")


def test_no_torch_is_needed(folder: Path) -> None:
    code = (
        f"import sys; from descend.cli import main; main(['runs', {str(folder)!r}]); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
