"""Which folder of a run is opened: by what is there, not by the links alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from descend.errors import Mistake
from descend.weights.checkpoints import checkpoint_names, resolve_checkpoint, step_name


def write(run: Path, step: int, best_step: int = 0) -> Path:
    """A checkpoint with the least that it must have."""
    folder = run / "checkpoints" / step_name(step)
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps({"step": step, "tree": {"$dict": [["best_step", best_step]]}}))
    size = (folder / "state.json").stat().st_size
    (folder / "checksums.json").write_text(json.dumps({"files": {"state.json": {"bytes": size}}}))
    return folder


def link(run: Path, name: str, step: int) -> None:
    (run / "checkpoints" / name).symlink_to(step_name(step))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for step in (100, 200, 300):
        write(tmp_path, step)
    link(tmp_path, "best", 200)
    link(tmp_path, "last", 300)
    return tmp_path


@pytest.mark.parametrize(
    ("which", "step"),
    [("best", 200), ("last", 300), (100, 100), ("100", 100), ("step-000100", 100), ("step-100", 100)],
)
def test_every_way_to_say_it(which: str | int, step: int, run: Path) -> None:
    assert resolve_checkpoint(run, which) == run / "checkpoints" / step_name(step)


def test_best_is_the_default(run: Path) -> None:
    assert resolve_checkpoint(str(run)).name == "step-000200"


@pytest.mark.parametrize("which", ["150", "step-000150", "newest", "", "../checkpoints/step-000100"])
def test_a_missing_one_is_a_mistake_that_lists_what_is_there(which: str, run: Path) -> None:
    with pytest.raises(Mistake, match=r"best \(step-000200\), last \(step-000300\), 100, 200, 300"):
        resolve_checkpoint(run, which)


def test_a_run_that_was_never_evaluated_has_no_best(tmp_path: Path) -> None:
    write(tmp_path, 5)
    with pytest.raises(Mistake, match=r"no checkpoint 'best'; there are: last \(step-000005\), 5"):
        resolve_checkpoint(tmp_path)


def test_links_that_are_behind_do_not_matter(run: Path) -> None:
    """Killed after the rename of step 400, the best so far, and before the links."""
    write(run, 400, best_step=400)
    assert resolve_checkpoint(run, "last").name == "step-000400"
    assert resolve_checkpoint(run, "best").name == "step-000400"


def test_a_best_that_is_gone_falls_back_on_the_link(run: Path) -> None:
    write(run, 400, best_step=350)
    assert resolve_checkpoint(run, "best").name == "step-000200"


@pytest.mark.parametrize("damage", ["no list", "a file short", "a file missing"])
def test_an_incomplete_one_does_not_count(damage: str, run: Path) -> None:
    newest = write(run, 400, best_step=400)
    if damage == "a file short":
        (newest / "state.json").write_text("{")
    else:
        (newest / ("checksums.json" if damage == "no list" else "state.json")).unlink()
    assert resolve_checkpoint(run, "last").name == "step-000300"
    assert resolve_checkpoint(run, "best").name == "step-000200"
    with pytest.raises(Mistake, match="no checkpoint '400'"):
        resolve_checkpoint(run, 400)


def test_beyond_a_million_steps_the_order_is_that_of_numbers(tmp_path: Path) -> None:
    for step in (1_000_000, 999_999, 2_000_000, 10_000_000):
        write(tmp_path, step)
    (tmp_path / "checkpoints" / "step-by-hand").mkdir()
    names = checkpoint_names(tmp_path / "checkpoints")
    assert names == ["step-999999", "step-1000000", "step-2000000", "step-10000000"]
    assert resolve_checkpoint(tmp_path, "last").name == "step-10000000"


def test_a_model_folder_is_its_own(run: Path, tmp_path: Path) -> None:
    folder = run / "checkpoints" / "step-000100"
    for which in ("best", "last", "100", 100):
        assert resolve_checkpoint(folder, which) == folder
    with pytest.raises(Mistake, match="is a model folder, not a run: it has no checkpoint '200'"):
        resolve_checkpoint(folder, "200")
    with pytest.raises(Mistake, match="is not a folder; give a model folder or a run folder"):
        resolve_checkpoint(tmp_path / "nothing")


def test_a_run_without_a_checkpoint_says_so(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(Mistake, match="holds no checkpoint yet"):
        resolve_checkpoint(tmp_path)
