from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from descend.errors import Mistake
from descend.labs import _examine, _sweep
from descend.labs._evidence import AtLeast
from descend.labs._sweep import Store, forecast, share, sweep


class Stopped(Exception):
    """As Ctrl-C would."""


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """One lab; `measured` are its seeds. Seed 7 stops the process the first time."""

    def measure(seed: int, budget: float) -> dict[str, Any]:
        made.measured.append(seed)
        if seed == 7 and made.measured.count(7) == 1:
            raise Stopped
        return {"gain": float(seed)}

    made = SimpleNamespace(
        CLAIM="it gains.",
        BUDGET=2.0,
        PREDICTIONS=(AtLeast("gain", 5.0),),
        measure=measure,
        effects=lambda numbers: {"gain": numbers["gain"]},
        measured=[],
        mark="abc",
    )
    for module in (_examine, _sweep):
        monkeypatch.setattr(module, "open_lab", lambda name: made)
    monkeypatch.setattr(_sweep, "mark_source", lambda name: made.mark)
    return made


def test_an_interrupted_sweep_goes_on(lab: SimpleNamespace, tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(Stopped):
        sweep("toy", range(5, 10), store=store)
    assert lab.measured == [5, 6, 7]
    assert forecast("toy", range(5, 10), None, store)[0] == 3
    found = sweep("toy", range(5, 10), store=store)
    assert lab.measured == [5, 6, 7, 7, 8, 9], "5 and 6 are kept"
    assert (found["verdict"], found["seeds"], found["missing"]) == ("supported", [5, 6, 7, 8, 9], [])
    assert found["predictions"][0]["held"] == "5 of 5 seeds"
    kept = json.loads((tmp_path / "toy" / "seed-5-2s.json").read_text(encoding="utf-8"))
    assert (kept["numbers"], kept["source"]) == ({"gain": 5.0}, "abc")
    sweep("toy", range(5, 7), store=store, again=True)
    assert lab.measured[-2:] == [5, 6]


def test_what_was_kept_is_judged_by_the_lab_as_it_is(lab: SimpleNamespace, tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert sweep("toy", range(3), store=store)["verdict"] == "refuted"
    lab.PREDICTIONS = (AtLeast("gain", 0.0),)
    assert sweep("toy", range(3), store=store)["verdict"] == "supported"
    assert lab.measured == [0, 1, 2]
    lab.mark = "other"
    sweep("toy", range(3), store=store)
    assert lab.measured == [0, 1, 2] * 2, "what decides the numbers has changed"


def test_a_large_budget_leaves_room(lab: SimpleNamespace) -> None:
    """The lab needs 2 s a seed."""
    asked = [None, 3.0, 6.0, 6.6, 30.0]
    assert [share("toy", range(3), budget) for budget in asked] == [2.0, 1.0, 2.0, 2.0, 7.0]


def test_what_is_not_afforded_is_left_out(
    lab: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each seed takes nearly half of the budget."""
    real = _sweep.examine
    monkeypatch.setattr(_sweep, "examine", lambda *given: {**real(*given), "seconds": 0.45})
    found = sweep("toy", range(20, 25), budget=1.0, store=Store(tmp_path))
    assert (found["seeds"], found["missing"], found["spent"]) == ([20, 21], [22, 23, 24], 0.9)
    assert found["verdict"] == "open"
    with pytest.raises(Mistake, match="at least 1"):
        sweep("toy", [])


def test_a_damaged_finding_is_named(lab: SimpleNamespace, tmp_path: Path) -> None:
    store = Store(tmp_path)
    sweep("toy", range(3), store=store)
    store.path("toy", 1, 2.0).write_text("{", encoding="utf-8")
    with pytest.raises(Mistake, match=r"seed-1-2s.json is not valid JSON"):
        sweep("toy", range(3), store=store)
