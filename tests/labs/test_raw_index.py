from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from descend.labs import raw_index
from descend.labs._evidence import judge_seed
from descend.labs.raw_index import NAMES, figure, measure

verdict = partial(judge_seed, raw_index)


def good() -> dict[str, Any]:
    return {"encoding": list(NAMES), "trained_length": [0.95, 0.95], "twice": [0.6, 0.8], "steps": 200, "chance": 0.5}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"trained_length": [0.95, 0.6]}, "open"),
        ({"twice": [0.8, 0.81]}, "open"),
        ({"twice": [0.9, 0.6]}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**good(), **change}) == expected


def test_numbers_and_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("descend.labs.raw_index.LENGTH", 10)
    numbers = measure(seed=0, budget=0.1)
    assert numbers["encoding"] == ["index", "sinusoidal"]
    assert verdict(numbers) == "open"
    assert len(figure(numbers).axes[0].patches) == 4
