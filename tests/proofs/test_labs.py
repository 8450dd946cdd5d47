from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from descend import labs
from descend.labs import _examine
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._sweep import Store
from proofs import labs as recording


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One lab, "toy"; the seeds that were measured."""
    seeds: list[int] = []

    def examine(name: str, seed: int) -> dict[str, Any]:
        seeds.append(seed)
        numbers = {"accuracy": 0.5 + seed / 8, "curve": [0.0] * 1000}
        found = {"lab": name, "seed": seed, "budget": 2.0, "seconds": 1.5, "numbers": numbers, "needs": 0.0}
        return _examine.judge_finding(found)

    toy = SimpleNamespace(
        CLAIM="it | holds",
        BUDGET=2.0,
        PREDICTIONS=(AtLeast("accuracy", 0.5, "better than chance"),),
        effects=lambda numbers: {"accuracy": numbers["accuracy"]},
    )
    monkeypatch.setattr(recording, "examine", examine)
    monkeypatch.setattr(recording, "mark_source", lambda name: "abc")
    monkeypatch.setattr(Store, "write", lambda store, found: found)
    for module in (labs, _examine):
        monkeypatch.setattr(module, "open_lab", lambda name: toy)
    monkeypatch.setattr(labs, "names", lambda: ["toy"])
    return seeds


def test_three_seeds_are_recorded_once(measured: list[int], tmp_path: Path) -> None:
    entry = recording.run(["toy"], tmp_path)["toy"]
    assert measured == [0, 1, 2]
    assert entry["verdict"] == "supported"
    assert entry["mean"] == {"accuracy": 0.625}, "long rows are for the figure"
    assert entry["spread"] == {"accuracy": 0.125}
    assert recording.read(tmp_path)["toy"] == entry
    assert "| toy | supported | 1 of 1 | supported, supported, supported | 2: 2, 2, 2 | it / holds |" in (
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
        "a": 0.3333333333,
        "b": [None, True, 7],
        "d": {"e": "x"},
    }


def test_what_is_recorded_is_judged_anew(measured: list[int], tmp_path: Path) -> None:
    """Other predictions on the same numbers need no measurement, and seeds that disagree leave the lab open."""
    recording.run(["toy"], tmp_path)
    toy = labs.open_lab("toy")
    toy.PREDICTIONS = (AtMost("accuracy", 0.4),)
    assert recording.judge_all(["toy"], tmp_path)["toy"]["verdict"] == "refuted"
    toy.PREDICTIONS = (AtMost("accuracy", 0.7),)
    entry = recording.run(["toy"], tmp_path)["toy"]
    assert entry["verdict"] == "open"
    assert [found["verdict"] for found in entry["findings"]] == ["supported", "supported", "refuted"]
    assert (entry["predictions"][0]["held"], entry["predictions"][0]["interval"]) == ("2 of 3 seeds", [0.5, 0.75])
    assert measured == [0, 1, 2]


def test_two_recordings_at_once_keep_each_other(measured: list[int], tmp_path: Path) -> None:
    recording.update(tmp_path, {"toy": recording.record_lab("toy", {})})
    recording.run(["toy"], tmp_path)
    assert recording.update(tmp_path, {})["toy"]["verdict"] == "supported"
