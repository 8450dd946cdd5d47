from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from descend import labs
from proofs import labs as recording


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One lab, "toy"; the seeds that were measured."""
    seeds: list[int] = []

    def examine(name: str, seed: int) -> dict[str, Any]:
        seeds.append(seed)
        numbers = {"accuracy": 0.5 + seed / 8, "curve": [0.0] * 1000}
        return {"lab": name, "claim": "it | holds", "seed": seed, "budget": 2.0, "seconds": 1.5, "numbers": numbers,
                "verdict": "supported"}  # fmt: skip

    monkeypatch.setattr(recording, "examine", examine)
    monkeypatch.setattr(recording, "mark_source", lambda name: "abc")
    monkeypatch.setattr(labs, "open_lab", lambda name: SimpleNamespace(BUDGET=2.0))
    monkeypatch.setattr(labs, "names", lambda: ["toy"])
    return seeds


def test_three_seeds_are_recorded_once(measured: list[int], tmp_path: Path) -> None:
    entry = recording.run(["toy"], tmp_path)["toy"]
    assert measured == [0, 1, 2]
    assert entry["verdict"] == "supported"
    assert entry["mean"] == {"accuracy": 0.625}, "long rows are for the figure"
    assert entry["spread"] == {"accuracy": 0.125}
    assert recording.read(tmp_path)["toy"] == entry
    assert "| toy | supported | supported, supported, supported | 2: 2, 2, 2 | it / holds |" in (
        tmp_path / "LABS.md"
    ).read_text(encoding="utf-8")
    recording.run(["toy"], tmp_path)
    assert measured == [0, 1, 2]
    recording.run(["toy"], tmp_path, again=True)
    assert measured == [0, 1, 2] * 2


def test_an_interrupted_recording_goes_on(measured: list[int], tmp_path: Path) -> None:
    first = recording.record_lab("toy", {})
    assert first["verdict"] == "incomplete"
    recording.write({"toy": first, "gone": first}, tmp_path)
    record = recording.run(["toy"], tmp_path)
    assert measured == [0, 1, 2]
    assert list(record) == ["toy"], "a lab that is no more is dropped"


def test_a_changed_lab_is_measured_anew(measured: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording.run(["toy"], tmp_path)
    monkeypatch.setattr(recording, "mark_source", lambda name: "changed")
    assert recording.run(["toy"], tmp_path)["toy"]["source"] == "changed"
    assert measured == [0, 1, 2] * 2


def test_numbers_are_shortened() -> None:
    assert recording.shorten({"a": 1 / 3, "b": [math.nan, True, 7], "c": [0] * 65, "d": {"e": "x"}}) == {
        "a": 0.333333,
        "b": [None, True, 7],
        "d": {"e": "x"},
    }
