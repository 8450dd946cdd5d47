"""--replace: nothing of the old run goes before the new one is certain, and nothing of other people's goes at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from descend.engine import replacement
from descend.engine.replacement import check_place
from descend.engine.run import Run
from descend.errors import Mistake

OLD, NEW = ({"name": name, "descend": "0.1.0", "values": {}} for name in ("old", "new"))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A run with a checkpoint, metrics, events and a report."""
    folder = tmp_path / "run"
    run = Run.create(folder, OLD)
    run.log({"step": 1, "loss": 1.0})
    run.close()
    (folder / "checkpoints/step-000001").mkdir(parents=True)
    (folder / "checkpoints/step-000001/model.safetensors").write_bytes(b"weights")
    (folder / "checkpoints/last").symlink_to("step-000001")
    (folder / "checkpoints/.aside-12").mkdir()
    (folder / "report.html").write_text("page")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_run_takes_the_place_of_another(old: Path) -> None:
    run = Run.create(old, NEW, replace=True)
    assert run.recipe == NEW
    assert names(old) == ["lock", "recipe.json"]


def test_files_of_other_people_stay_and_are_named(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = ["notes.txt", "photos/a.png", "checkpoints/mine.txt", "tensorboard/mine.txt", ".hidden"]
    for name in mine:
        (old / name).parent.mkdir(exist_ok=True)
        (old / name).write_text("mine")
    Run.create(old, NEW, replace=True)
    assert all((old / name).read_text() == "mine" for name in mine)
    assert names(old / "checkpoints") == names(old / "tensorboard") == ["mine.txt"]
    assert "stay: .hidden, checkpoints, notes.txt, photos, tensorboard\n" in capsys.readouterr().err


def test_checkpoints_on_another_disk_are_emptied_there(old: Path, tmp_path: Path) -> None:
    os.rename(old / "checkpoints", tmp_path / "large")
    (old / "checkpoints").symlink_to(tmp_path / "large")
    Run.create(old, NEW, replace=True)
    assert names(tmp_path / "large") == []
    assert (old / "checkpoints").is_symlink()


@pytest.mark.parametrize("content", ["{}", '{"name": "cake", "values": ["flour"]}', "[1]", "no JSON", ""])
def test_a_recipe_that_is_not_ours_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text(content)
    (tmp_path / "cake.jpg").write_text("cake")
    for replace in (True, False):
        with pytest.raises(Mistake, match="choose another --out"):
            Run.create(tmp_path, NEW, replace=replace)
    assert names(tmp_path) == ["cake.jpg", "recipe.json"]


def test_what_a_crash_interrupted_is_finished_by_the_next_who_opens(old: Path) -> None:
    (old / "replacing.json").write_text(json.dumps(NEW))
    assert Run.open(old).recipe == NEW
    assert names(old) == ["lock", "recipe.json"]


def test_before_the_new_recipe_is_written_the_old_run_is_whole(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, value: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replacement, "write_json", full)
    before = names(old)
    with pytest.raises(OSError, match="No space"):
        Run.create(old, NEW, replace=True)
    assert names(old) == before
    assert Run.open(old).recipe == OLD


def test_a_folder_in_which_nothing_was_begun_is_empty(tmp_path: Path) -> None:
    for name in ("lock", ".recipe.json.123"):
        (tmp_path / name).write_text("half")
    assert Run.create(tmp_path, NEW).recipe == NEW
    assert names(tmp_path) == ["lock", "recipe.json"]


def test_a_place_is_checked_without_being_touched(old: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file/run"):
        with pytest.raises(Mistake, match="is a file, not a folder"):
            check_place(out, replace=True)
    with pytest.raises(Mistake, match="already holds a run"):
        check_place(old, replace=False)
    with pytest.raises(Mistake, match="not empty and not a run"):
        check_place(old / "checkpoints", replace=True)
    check_place(tmp_path / "a/b/c", replace=False)
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(Mistake, match="nothing can be written"):
        check_place(tmp_path / "run", replace=False)
    tmp_path.chmod(0o700)
