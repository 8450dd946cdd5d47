"""A seeded sample of `python -m proofs.faults`: an error or a crash at a file operation, and what comes after it."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.faults.operations import Operation, watch_operations
from tests.faults.points import (
    ERRORS,
    SCENARIOS,
    Scenario,
    compare,
    count_operations,
    fork,
    make_fault,
    prepare,
    tiny,
    try_point,
)

SEED = 0
POINTS = 1  # for each scenario and kind of fault


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    return prepare(folder)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_fault_costs_nothing_and_is_told_in_one_line(
    scenario: Scenario, folder: Path, expected: dict[str, Any]
) -> None:
    operations = len(count_operations(scenario, "crash", folder))
    assert operations > 40
    for kind in ("crash", *ERRORS):
        for k in random.Random(f"{SEED} {scenario.name} {kind}").sample(range(1, operations + 1), POINTS):
            outcome = try_point(scenario, make_fault(kind, k), folder, expected)
            assert outcome.verdict in ("held", "done"), f"seed {SEED}, {kind} at {k}: {outcome}"


def test_operations_are_counted_in_their_order(tmp_path: Path) -> None:
    seen: list[str] = []

    def work() -> None:
        watch_operations(tmp_path / "root", lambda operation: seen.append(operation.name))
        Path("folder").mkdir()
        with open("folder/a", "w", encoding="utf-8") as file:
            file.write("text")
            file.flush()
            os.fsync(file.fileno())
        os.replace("folder/a", "folder/b")
        Path(tmp_path / "elsewhere").write_text("not counted")
        (tmp_path / "seen").write_text(" ".join(seen))

    (tmp_path / "root").mkdir()
    assert fork(work, tmp_path / "log") == 0, (tmp_path / "log").read_text()
    assert (tmp_path / "seen").read_text() == "os.mkdir open write os.fsync os.rename"


def test_errors_come_from_the_kth_operation_on() -> None:
    fault, change = make_fault("ENOSPC", 2), Operation("write", "a", changes=True)
    fault(change)
    fault(Operation("open", "a", changes=False))  # reading needs no space
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            fault(change)


def test_a_run_that_went_another_way_is_found_out(folder: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    from descend.verbs.train import TrainFlags, start_run

    start_run("tiny", TrainFlags(tiny(seed=1), str(tmp_path / "run"), quiet=True), ())
    (tmp_path / "run/.left").write_text("")
    (tmp_path / "run/report.html").unlink()
    said = compare(tmp_path / "run", expected)
    for part in ("last model.safetensors", "metrics", "no report.html", ".left is left over"):
        assert part in said
