"""What happens to one of two processes ends both: a line each, the same step, a code that is not 0, no waiting."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs.tiny import write_files, write_images
from tests.pair import run_pair

WORKER = "tests.verbs.lone_process"


@pytest.mark.parametrize(("scene", "cause"), [("data", "line 2: 1 fields"), ("disk", "no space left on device")])
def test_a_fault_of_one_process_ends_both_in_one_line_each(tmp_path: Path, scene: str, cause: str) -> None:
    done = run_pair(WORKER, scene, str(tmp_path))
    assert done.stdout.splitlines()[-1] == "2 2", done.stderr
    said = sorted(done.stderr.splitlines(), key=lambda line: "another one has gone" in line)
    assert len(said) == 2, done.stderr
    assert cause in said[0]
    assert "another one has gone" in said[1]


def test_a_signal_to_one_process_saves_once_for_all(tmp_path: Path) -> None:
    write_images(tmp_path / "images", ("cat", "owl"), 8)
    done = run_pair(WORKER, "signal", str(tmp_path))
    *said, codes = done.stdout.splitlines()
    assert codes == "143 143", done.stderr
    assert not done.stderr
    assert len(said) == 1
    assert "SIGTERM: saved at step 3." in said[0]
    assert {path.name for path in (tmp_path / "run/checkpoints").iterdir()} >= {"last", "step-000003"}


def test_who_comes_late_does_not_take_the_run_of_the_others_for_an_old_one(tmp_path: Path) -> None:
    done = run_pair(WORKER, "late", str(tmp_path))
    assert done.stdout.splitlines()[-1] == "0 0", done.stderr
    assert (tmp_path / "run/checkpoints/step-000004").is_dir()


def test_averages_and_answers_of_a_model_in_shards(tmp_path: Path) -> None:
    pairs = write_files(tmp_path / "files") / "pairs.tsv"
    done = run_pair(WORKER, "shards", str(tmp_path), str(pairs))
    assert done.stdout.splitlines()[-1] == "0 0", done.stderr
    assert all((tmp_path / name / "checkpoints/best").is_dir() for name in ("averaged", "answers"))
