"""The record of proof, tried on small suites in a folder of their own: with one process and with two."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from descend.catalog.proof import Proof, proofs, written

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SUITE = """
import pytest

@pytest.mark.system("bpe")
@pytest.mark.parametrize("n", [1, 2])
def test_pairs(n):
    pass

@pytest.mark.system("relu", "softmax")
def test_two():
    pass

@pytest.mark.system("relu")
def test_broken():
    assert WORKS

@pytest.mark.system("tanh")
@pytest.mark.skip
def test_skipped():
    pass

def test_unmarked():
    pass

class TestClass:
    @pytest.mark.system("gpt-2")
    def test_inside(self):
        pass
"""
PASSED = {
    "bpe": {"tests": ["tests/test_a.py::test_pairs[1]", "tests/test_a.py::test_pairs[2]"], "passed": True},
    "gpt-2": {"tests": ["tests/test_a.py::TestClass::test_inside"], "passed": True},
    "relu": {"tests": ["tests/test_a.py::test_broken", "tests/test_a.py::test_two"], "passed": True},
    "softmax": {"tests": ["tests/test_a.py::test_two"], "passed": True},
}
ONE, TWO = (), ("-p", "xdist", "-n", "2")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    shutil.copy(CONFTEST, tmp_path / "tests" / "conftest.py")
    (tmp_path / "tests" / "test_a.py").write_text(f"WORKS = True\n{SUITE}", encoding="utf-8")
    ini = "[pytest]\ntestpaths = tests\nmarkers = system(*slugs): systems\naddopts = -p no:cacheprovider\n"
    (tmp_path / "pytest.ini").write_text(ini, encoding="utf-8")
    return tmp_path


def pytest_in(suite: Path, *args: str, ci: bool = False) -> tuple[int, str, Any]:
    """Run pytest there: its exit code, what it said, and the record (None when there is none)."""
    path = suite / "proof.json"
    env = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("PYTEST")}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | ({"CI": "1"} if ci else {})  # without other plugins it starts fast
    command = [sys.executable, "-m", "pytest", f"--proof={path}", *args]
    done = subprocess.run(command, cwd=suite, env=env, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr, json.loads(path.read_text()) if path.exists() else None


@pytest.mark.parametrize("processes", [ONE, TWO], ids=["one", "two"])
def test_a_complete_run_writes_the_record(suite: Path, processes: tuple[str, ...]) -> None:
    code, said, record = pytest_in(suite, *processes)
    assert (code, record) == (0, PASSED), said
    assert "proof.json was out of date" in said


def test_a_failed_test_is_recorded_and_ci_refuses_a_stale_record(suite: Path) -> None:
    pytest_in(suite)
    code, said, _ = pytest_in(suite, ci=True)
    assert code == 0, said
    assert "proof.json" not in said
    (suite / "tests" / "test_a.py").write_text(f"WORKS = False\n{SUITE}", encoding="utf-8")
    code, said, record = pytest_in(suite)
    assert code == 1
    assert record == PASSED | {"relu": PASSED["relu"] | {"passed": False}}
    (suite / "tests" / "test_a.py").write_text(f"WORKS = True\n{SUITE}", encoding="utf-8")
    code, said, record = pytest_in(suite, *TWO, ci=True)
    assert (code, record) == (1, PASSED), said
    assert "proof.json is stale: run make test and commit it" in said


@pytest.mark.parametrize(
    "part",
    [
        ("-k", "pairs"),
        ("tests/test_a.py",),
        ("--ignore", "tests/test_b.py"),
        ("--deselect", "tests/test_a.py::test_two", *TWO),
        ("--collect-only",),
    ],
    ids=lambda part: part[0].removeprefix("--"),
)
def test_a_part_of_the_suite_leaves_the_record_alone(suite: Path, part: tuple[str, ...]) -> None:
    code, said, record = pytest_in(suite, *part, ci=True)
    assert (code, record) == (0, None), said


def test_a_worker_that_dies_leaves_the_record_alone(suite: Path) -> None:
    dies = 'import os\nimport pytest\n\n@pytest.mark.system("bpe")\ndef test_it():\n    os._exit(1)\n'
    (suite / "tests" / "test_b.py").write_text(dies, encoding="utf-8")
    code, said, record = pytest_in(suite, *TWO)
    assert (code, record) == (1, None), said


@pytest.mark.parametrize("processes", [ONE, TWO], ids=["one", "two"])
def test_an_unknown_slug_is_an_error_at_collection(suite: Path, processes: tuple[str, ...]) -> None:
    bad = 'import pytest\n\n@pytest.mark.system("sofmax")\ndef test_it():\n    pass\n'
    (suite / "tests" / "test_b.py").write_text(bad, encoding="utf-8")
    code, said, record = pytest_in(suite, *processes)
    assert code in (1, 2), said
    assert "tests/test_b.py::test_it: no system 'sofmax' in systems.tsv. Did you mean 'softmax'?" in said
    assert record is None


def test_the_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = {"relu": Proof(("b", "c"), False), "bpe": Proof(("a",), True)}
    path = tmp_path / "proof.json"
    path.write_text(written(record), encoding="utf-8")
    assert proofs(path) == record
    assert list(proofs(path)) == ["bpe", "relu"]
    assert proofs(tmp_path / "none.json") == {}
