from __future__ import annotations

from pathlib import Path

import pytest

from proofs import flat, reliability


def test_a_short_run_is_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliability, "PATH", tmp_path / "RELIABILITY.json")
    monkeypatch.setattr(reliability, "PAGE", tmp_path / "reliability.md")
    monkeypatch.setattr("sys.argv", ["flat", "--steps", "300"])
    assert flat.main() == 0


def test_growth_is_found() -> None:
    still = [{"memory": 10**9, "files": 20, "threads": 1} for _ in range(100)]
    assert flat.find_growth(still) == {}
    leaking = [{**sample, "memory": 10**9 + 10**5 * k, "files": 20 + k // 30} for k, sample in enumerate(still)]
    assert flat.find_growth(leaking) == {"memory": 6_500_000, "files": 2}
