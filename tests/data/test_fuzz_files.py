"""Damaged data files: every reader reads them or names what is wrong, in one line and in time.

A sample here; DESCEND_FUZZ=2000 makes it larger, and `python -m proofs.fuzz_files 2000 1` counts outcomes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proofs import fuzz_files
from proofs.fuzz_files import HARMS, Damage, outcome, run
from proofs.valid_files import READERS, Reader

CASES = int(os.environ.get("DESCEND_FUZZ", "40"))


@pytest.mark.parametrize("seed", [0])
def test_whatever_is_done_to_files_is_read_or_named(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "")  # set by the run, and put back
    found = run(CASES, seed)
    assert sum(found.counts.values()) >= CASES // 2
    assert not found.wrong, f"seed {seed}: {found.wrong}"
    assert found.counts["read"]
    assert found.counts["mistake"]


@pytest.mark.parametrize("how", sorted(HARMS))
def test_every_harm_is_survived_by_a_reader_of_images(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    folder.mkdir()
    READERS["class folders"].write(folder)
    Damage(how, 3, 0.5, 12345)(folder)
    assert outcome(READERS["class folders"], folder) in ("read", "mistake")


def test_what_must_not_come_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(folder: Path) -> None:
        while True:
            pass

    monkeypatch.setattr(fuzz_files, "PATIENCE", 0.1)
    assert outcome(Reader(hang, hang), tmp_path) == "hang"
    assert outcome(Reader(hang, lambda folder: 1 // 0), tmp_path).startswith("ZeroDivisionError")
