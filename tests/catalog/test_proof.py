"""The record of proof, tried on small suites in a folder of their own: with one process and with two."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from descend.catalog.demands import demands
from descend.catalog.proof import CORE, Key, Proof, format_record, merge_record, proofs, read_record

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SUITE = """
import pytest

@pytest.mark.system("bpe")
@pytest.mark.parametrize("n", [1, 2])
def test_pairs(n):
    assert n == 1 or WORKS

@pytest.mark.system("relu")
@pytest.mark.system("softmax")
def test_two():
    pass

@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.system("relu")), 2])
def test_one_case(n):
    assert n == 1 or WORKS

@pytest.mark.system("tanh")
@pytest.mark.skip
def test_never():
    pass

@pytest.mark.system("sigmoid")
def test_with_a_package():
    pytest.importorskip(PACKAGE)

def test_unmarked():
    pass

class TestClass:
    @pytest.mark.system("gpt-2")
    def test_inside(self):
        pass
"""
OTHER = 'import pytest\n\n@pytest.mark.system("bpe")\ndef test_it():\n    pass\n'
A, B = "tests/test_a.py", "tests/test_b.py"
PASSED = {
    Key(f"{A}::TestClass::test_inside", "gpt-2"): True,
    Key(f"{A}::test_one_case", "relu"): True,
    Key(f"{A}::test_pairs", "bpe"): True,
    Key(f"{A}::test_two", "relu"): True,
    Key(f"{A}::test_two", "softmax"): True,
    Key(f"{A}::test_with_a_package", "sigmoid"): True,
}
IN_B = {Key(f"{B}::test_it", "bpe"): True}
ONE, TWO = (), ("-p", "xdist", "-n", "2")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    shutil.copy(CONFTEST, tmp_path / "tests" / "conftest.py")
    write_suite(tmp_path)
    ini = "[pytest]\ntestpaths = tests\nmarkers = system(slug, *demands): proves\naddopts = -p no:cacheprovider\n"
    (tmp_path / "pytest.ini").write_text(ini, encoding="utf-8")
    return tmp_path


def write_suite(folder: Path, works: bool = True, package: str = "os") -> None:
    (folder / A).write_text(f"WORKS = {works}\nPACKAGE = {package!r}\n{SUITE}", encoding="utf-8")


def pytest_in(suite: Path, *args: str, ci: bool = False) -> tuple[int, str, dict[Key, bool]]:
    """Run pytest there: its exit code, what it said, and the record."""
    path = suite / "proof.tsv"
    env = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("PYTEST")}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | ({"CI": "1"} if ci else {})  # without other plugins it starts fast
    command = [sys.executable, "-m", "pytest", f"--proof={path}", *args]
    done = subprocess.run(command, cwd=suite, env=env, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr, read_record(path)


@pytest.mark.parametrize("processes", [ONE, TWO], ids=["one", "two"])
def test_a_run_writes_the_record(suite: Path, processes: tuple[str, ...]) -> None:
    code, said, record = pytest_in(suite, *processes)
    assert (code, record) == (0, PASSED), said
    assert "proof.tsv was out of date" in said


def test_a_failed_case_is_recorded_and_ci_refuses_a_stale_record(suite: Path) -> None:
    pytest_in(suite)
    code, said, _ = pytest_in(suite, ci=True)
    assert code == 0, said
    assert "proof.tsv" not in said
    write_suite(suite, works=False)
    code, said, record = pytest_in(suite)
    assert code == 1
    # In test_one_case only the case without a mark failed.
    assert record == PASSED | {Key(f"{A}::test_pairs", "bpe"): False}
    write_suite(suite)
    code, said, record = pytest_in(suite, *TWO, ci=True)
    assert (code, record) == (1, PASSED), said
    assert "proof.tsv is stale: run make test and commit it" in said
    assert f"-{A}::test_pairs\tbpe\tcore\tfailed" in said
    assert f"+{A}::test_pairs\tbpe\tcore\tpassed" in said


def test_a_test_that_lacks_its_package_keeps_its_line(suite: Path) -> None:
    pytest_in(suite)
    write_suite(suite, package="no_such_package")
    code, said, record = pytest_in(suite, ci=True)
    assert (code, record) == (0, PASSED), said


def test_a_part_of_the_suite_replaces_the_lines_of_its_files(suite: Path) -> None:
    (suite / B).write_text(OTHER, encoding="utf-8")
    pytest_in(suite)
    write_suite(suite, works=False)
    _, _, record = pytest_in(suite, B)
    assert record == PASSED | IN_B
    (suite / B).write_text("def test_unmarked():\n    pass\n", encoding="utf-8")
    _, _, record = pytest_in(suite, B, *TWO)
    assert record == PASSED
    (suite / B).write_text(OTHER, encoding="utf-8")
    _, _, record = pytest_in(suite, B)
    assert record == PASSED | IN_B
    (suite / A).unlink()
    _, _, record = pytest_in(suite, B)
    assert record == IN_B


@pytest.mark.parametrize(
    "part",
    [
        ("-k", "pairs"),
        (f"{A}::test_two",),
        ("--ignore", A),
        ("--deselect", f"{A}::test_two", *TWO),
        ("--collect-only",),
    ],
    ids=lambda part: part[0].removeprefix("--"),
)
def test_a_part_of_a_file_leaves_the_record_alone(suite: Path, part: tuple[str, ...]) -> None:
    (suite / B).write_text("def test_pairs():\n    pass\n", encoding="utf-8")
    code, said, record = pytest_in(suite, *part, ci=True)
    assert (code, record) == (0, {}), said


def test_a_worker_that_dies_leaves_the_record_alone(suite: Path) -> None:
    dies = 'import os\nimport pytest\n\n@pytest.mark.system("bpe")\ndef test_it():\n    os._exit(1)\n'
    (suite / B).write_text(dies, encoding="utf-8")
    code, said, record = pytest_in(suite, *TWO)
    assert (code, record) == (1, {}), said


@pytest.mark.parametrize("processes", [ONE, TWO], ids=["one", "two"])
@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ('"sofmax"', "no system 'sofmax' in systems.tsv. Did you mean 'softmax'?"),
        ('"relu", "no-such-demand"', "no demand 'no-such-demand' of relu in demands/activations.tsv."),
    ],
)
def test_an_unknown_name_is_an_error_at_collection(
    suite: Path, mark: str, message: str, processes: tuple[str, ...]
) -> None:
    bad = f"import pytest\n\n@pytest.mark.system({mark})\ndef test_it():\n    pass\n"
    (suite / B).write_text(bad, encoding="utf-8")
    code, said, record = pytest_in(suite, *processes)
    assert code in (1, 2), said
    assert f"{B}::test_it: {message}" in said
    assert not [key for key in record if key.test.startswith(B)]


def test_the_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = {
        Key("b", "relu"): False,
        Key("c", "relu"): True,
        Key("c", "relu", "kink"): True,
        Key("d", "relu", "timing"): True,
        Key("a", "bpe"): True,
    }
    path = tmp_path / "proof.tsv"
    path.write_text(format_record(record), encoding="utf-8")
    assert read_record(path) == record
    assert format_record(read_record(path)) == path.read_text(encoding="utf-8")
    relu = Proof(core=("b", "c"), demands={"kink": ("c",), "timing": ("d",)}, failed=("b",))
    assert proofs(path) == {"bpe": Proof(core=("a",)), "relu": relu}
    assert list(proofs(path)) == ["bpe", "relu"]
    assert proofs(tmp_path / "none.tsv") == {}


def test_what_is_proven() -> None:
    proof = Proof(core=("b", "c"), demands={"kink": ("c",), "timing": ("b",)}, failed=("b",))
    assert proof.tests == ("b", "c")
    assert not proof.passed
    assert [proof.proves(demand) for demand in (CORE, "kink", "timing", "other")] == [False, True, False, False]
    assert Proof(core=("a",)).passed
    assert not Proof().passed


def test_of_two_merged_lines_the_failure_counts(tmp_path: Path) -> None:
    path = tmp_path / "proof.tsv"
    lines = format_record({Key("a", "bpe"): False}) + format_record({Key("a", "bpe"): True})
    path.write_text(lines, encoding="utf-8")
    assert read_record(path) == {Key("a", "bpe"): False}


def test_merging_keeps_what_was_not_run() -> None:
    old = {Key("x.py::a", "bpe"): True, Key("x.py::b", "bpe"): True, Key("y.py::a", "bpe"): False}
    new = {Key("x.py::a", "relu"): True, Key("x.py::b", "bpe"): None, Key("x.py::c", "bpe"): None}
    assert merge_record(old, new, ["x.py"]) == {
        Key("x.py::a", "relu"): True,
        Key("x.py::b", "bpe"): True,
        Key("y.py::a", "bpe"): False,
    }


def test_no_demand_is_called_core() -> None:
    assert not [slug for slug, wanted in demands().items() if CORE in wanted]
