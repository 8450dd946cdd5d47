from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from descend.labs import _examine
from descend.labs._evidence import AtMost, NeedsMore
from descend.labs._examine import average, examine, examine_seeds, gather, measure_spread


def measure(seed: int, budget: float) -> dict[str, Any]:
    torch.randn(2, 2) @ torch.randn(2, 2)
    return {"steps": round(2 * budget), "curve": [1.0, float(seed)], "kind": "toy", "threads": torch.get_num_threads()}


LAB = SimpleNamespace(
    CLAIM="it grows",
    ENTRIES=("MF-1",),
    BUDGET=4.0,
    PREDICTIONS=(AtMost("end", 1.0, "it would grow beyond"),),
    measure=measure,
    effects=lambda numbers: {"end": numbers["curve"][1]},
    needs=lambda numbers: 0.0 if numbers["steps"] else 3.0,
)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_examine, "open_lab", lambda name: LAB)


@pytest.mark.usefixtures("lab")
def test_a_lab_spends_its_own_budget_unless_told() -> None:
    found = examine("toy_lab", seed=3)
    assert (found["lab"], found["seed"], found["budget"]) == ("toy-lab", 3, 4.0)
    assert found["numbers"]["steps"] == 8
    assert found["verdict"] == "refuted"
    assert found["seconds"] > 0
    assert examine("toy", 0, budget=1)["numbers"]["steps"] == 2


@pytest.mark.usefixtures("lab")
def test_a_measurement_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert examine("toy")["numbers"]["threads"] == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.usefixtures("lab")
def test_several_seeds() -> None:
    found = examine_seeds("toy", range(1, 4))
    assert found["seeds"] == [1, 2, 3]
    assert found["verdicts"] == ["supported", "refuted", "refuted"]
    assert found["verdict"] == "open"
    assert (found["claim"], found["entries"], found["printed"]) == ("it grows", ["MF-1"], "")
    (end,) = found["predictions"]
    assert (end["mean"], end["interval"], end["held"], end["predicted"]) == (2.0, [1.0, 3.0], "1 of 3 seeds", "≤ 1")
    assert found["mean"]["curve"] == [1.0, 2.0]
    assert found["spread"]["curve"] == [0.0, 1.0]
    assert found["mean"]["kind"] is None
    assert len(found["seconds"]) == 3


@pytest.mark.usefixtures("lab")
def test_a_budget_that_is_too_small_says_what_is_needed() -> None:
    found = examine_seeds("toy", range(3), budget=0.2)
    assert (found["verdict"], found["needs"], found["verdicts"]) == ("open", 3.0, ["open"] * 3)
    assert found["predictions"][0]["values"] == [None] * 3


def spin(seed: int, budget: float) -> dict[str, Any]:
    while True:
        pass


def test_a_measurement_is_stopped_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_examine, "open_lab", lambda name: SimpleNamespace(**{**vars(LAB), "measure": spin}))
    found = examine("toy", budget=0.1, limit=0.1)
    assert 0.05 < found["seconds"] < 0.3
    assert (found["numbers"], found["effects"], found["needs"], found["verdict"]) == (None, {"end": None}, 4.0, "open")
    assert gather([found])["mean"] == {}


def test_what_was_interrupted_leaves_gradients_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception between the switch of `no_grad` and its block leaves them off."""

    def stop(seed: int, budget: float) -> dict[str, Any]:
        torch.set_grad_enabled(False)
        raise NeedsMore(1)

    monkeypatch.setattr(_examine, "open_lab", lambda name: SimpleNamespace(**{**vars(LAB), "measure": stop}))
    examine("toy")
    assert torch.is_grad_enabled()


def test_a_measurement_that_breaks_down_with_too_little_work_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(seed: int, budget: float) -> dict[str, Any]:
        raise ValueError("no example of a class")

    monkeypatch.setattr(_examine, "open_lab", lambda name: SimpleNamespace(**{**vars(LAB), "measure": fail}))
    found = examine_seeds("toy", range(3), budget=1.0)
    assert (found["verdict"], found["needs"]) == ("open", 4.0)
    assert found["why"] == ["with so little work it is not defined: no example of a class"] * 3
    with pytest.raises(ValueError, match="no example"):
        examine("toy")


def test_a_measurement_may_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(seed: int, budget: float) -> dict[str, Any]:
        raise NeedsMore(70)

    monkeypatch.setattr(_examine, "open_lab", lambda name: SimpleNamespace(**{**vars(LAB), "measure": refuse}))
    assert examine("toy")["needs"] == 70


def test_numbers_are_averaged_where_they_match() -> None:
    rows = [{"a": 1, "b": [1.0, None], "c": [1], "d": True}, {"a": 3, "b": [2.0, None], "c": [1, 2], "d": True}]
    assert average(rows, max) == {"a": 3.0, "b": [2.0, None], "c": None, "d": None}


@pytest.mark.parametrize("other", [float("nan"), float("inf")])
def test_numbers_that_could_not_be_measured_have_no_spread(other: float) -> None:
    assert math.isnan(measure_spread([1.0, other]))
    assert measure_spread([1.0, 3.0]) == math.sqrt(2)
    assert measure_spread([other]) == 0.0
