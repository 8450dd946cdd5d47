from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofs import reliability


@pytest.fixture(autouse=True)
def aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliability, "PATH", tmp_path / "RELIABILITY.json")
    monkeypatch.setattr(reliability, "PAGE", tmp_path / "docs" / "reliability.md")


def test_a_record_is_kept_beside_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert reliability.record("zebra", {"points": 1200, "equal": 1200, "tracebacks": 0}, seed=3)
    assert reliability.record("apple", {"cases": 5}, seed=0)
    assert reliability.record("zebra", {"points": 1300, "tracebacks": 0}, seed=4)
    entries = json.loads(reliability.PATH.read_text())
    assert list(entries) == ["apple", "zebra"]
    assert entries["zebra"]["counts"] == {"points": 1300, "tracebacks": 0}
    assert entries["zebra"]["seed"] == 4
    page = reliability.PAGE.read_text()
    assert "1,300 points, **0 tracebacks** | 4 | yes" in page
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "zebra: 1,200 points, 1,200 equal, 0 tracebacks (seed 3) -> holds"


def test_a_bad_count_or_no_case_at_all_does_not_hold() -> None:
    assert not reliability.record("faults", {"points": 9, "tracebacks": 1}, seed=0)
    assert not reliability.record("kills", {"kills": 0, "different": 0}, seed=0)
    assert "NO" in reliability.PAGE.read_text()


def test_the_page_says_what_a_proof_does() -> None:
    assert reliability.describe_proof("reliability").startswith("counts, seed, date and machine")
    assert reliability.describe_proof("no_such_proof") == ""
