"""Transfer to a folder of images of any size in one command, with the run from scratch beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from descend import cli
from descend.engine.run import Run
from descend.verbs.compare import tell_gain
from proofs.tiny import write_files

SHORT = ["--steps", "2", "--eval-every", "1", "--save-every", "1", "--threads", "1", "--quiet"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network for grey images of 16 × 16."""
    out = tmp_path_factory.mktemp("runs") / "base"
    given = ["--data.channels", "1", "--data.size", "16", "--model.stem", "4", "--model.widths", "4", "4"]
    images = str(write_files(out.parent / "files") / "images")
    flags = ["--data.path", images, *given, "--model.depths", "1", "1", *SHORT, "--out", str(out)]
    assert cli.main(["train", "cnn-images", *flags]) == 0
    return out


def test_one_command_moves_a_network_to_a_folder_and_tells_what_was_gained(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = str(write_files(tmp_path / "files") / "images")
    flags = ["--data.path", images, "--start.path", str(base), *SHORT, "--out", str(tmp_path / "moved")]
    assert cli.main(["train", "transfer-images", *flags, "--start.compare"]) == 0
    out = capsys.readouterr().out
    said = [line for line in out.splitlines() if "from scratch" in line]
    assert [line.split()[0] for line in said] == ["validation", "test"]
    run, scratch = Run.open(tmp_path / "moved"), Run.open(tmp_path / "moved-from-scratch")
    facts = run.recipe["facts"]
    assert facts["image"] == scratch.recipe["facts"]["image"] == "1×16×16"  # the network's, not the files'
    assert facts["started from"] == str(base)
    assert "started from" not in scratch.recipe["facts"]
    assert facts["parameters"] == scratch.recipe["facts"]["parameters"]
    assert facts["from scratch"].startswith("validation accuracy ")
    assert "moved-from-scratch" in (run.folder / "report.html").read_text(encoding="utf-8")


def test_without_a_comparison_nothing_is_told(base: Path) -> None:
    run = Run.open(base)
    assert "from scratch" not in run.recipe["facts"]
    assert tell_gain(run, None) == []  # type: ignore[arg-type]
    assert cli.main(["train", "transfer-images", "--start.compare", *SHORT, "--out", str(base.parent / "none")]) == 2
