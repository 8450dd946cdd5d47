"""Files that belong to somebody else: a line that names the file, and a run whose checkpoints are out of reach does not
begin anew. (Root may do everything, so these are tried as another user.)"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from descend import cli
from tests.faults.points import prepare_half, train
from tests.other_user import AS_ROOT, NOBODY, call_as, open_folders

pytestmark = AS_ROOT
TINY = "--steps 2 --eval-every 1 --save-every 1 --threads 1 --quiet"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of root's, in folders that all may read; every verb was called once, so that all is imported."""
    home = tmp_path_factory.mktemp("other")
    open_folders(home)
    train(home / "run")
    (home / "table.csv").write_text("a,b\n" + "\n".join(f"{k},{k % 3}" for k in range(40)))
    cli.main(["evaluate", str(home / "run")])
    cli.main(f"plan mlp-csv --data.path {home / 'table.csv'} --data.target b".split())
    cli.main(f"train mlp-csv --data.path {home / 'table.csv'} --data.target b {TINY} --out {home / 'warm'}".split())
    return home


def say(home: Path, line: str) -> str:
    """The one line of a refusal."""
    code, said = call_as(NOBODY, lambda: cli.main(line.split()), home / "log")
    assert code == 2, said
    assert said.count("\n") == 1, said
    return said.strip()


def test_nothing_is_written_where_one_may_not(home: Path) -> None:
    assert f"nothing can be written in {home}" in say(home, f"train mlp-wine {TINY} --out {home / 'new'}")
    replaced = say(home, f"train mlp-wine {TINY} --out {home / 'run'} --replace")
    assert f"nothing can be written in {home / 'run'}" in replaced
    assert "lock: permission denied" in say(home, f"resume {home / 'run'} --quiet")


def test_a_run_of_another_user_can_be_judged(home: Path) -> None:
    assert call_as(NOBODY, lambda: cli.main(["evaluate", str(home / "run")]), home / "log")[0] == 0


def test_data_that_may_not_be_read_are_named(home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    shutil.copy(home / "table.csv", closed)
    said = say(home, f"plan mlp-csv --data.path {closed / 'table.csv'} --data.target b")
    assert f"{closed / 'table.csv'} cannot be read: permission denied" in said


def test_a_run_whose_checkpoints_are_out_of_reach_does_not_begin_anew(home: Path) -> None:
    run = home / "half"
    prepare_half(run)
    for path in (run, *run.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    lines = (run / "metrics.jsonl").read_text()
    (run / "checkpoints").chmod(0o000)
    assert f"{run / 'checkpoints'}: permission denied" in say(home, f"resume {run} --quiet")
    assert f"{run / 'checkpoints'}: permission denied" in say(home, f"evaluate {run}")
    assert (run / "metrics.jsonl").read_text() == lines
    (run / "checkpoints").chmod(0o755)
    assert call_as(NOBODY, lambda: cli.main(["resume", str(run), "--quiet"]), home / "log")[0] == 0
