"""Mined negatives: verdicts, and a measurement in little."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from descend.labs import mined_negatives
from descend.labs._evidence import judge_seed
from descend.labs.mined_negatives import MINERS, figure, measure

verdict = partial(judge_seed, mined_negatives)


def good() -> dict[str, Any]:
    return {"positive": [0.9, 0.83, 0.83, 0.97], "negative": [0.4, 0.2, 0.4, 0.93], "steps": 100}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"negative": [0.4, 0.2, 0.8, 0.93]}, "refuted"),
        ({"negative": [0.4, 0.2, 0.4, 0.5]}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**good(), **change}) == expected


@pytest.mark.system("siamese-contrastive")
@pytest.mark.system("hard-negative-mining")
def test_measured_in_little() -> None:
    numbers = measure(seed=0, budget=0.5)
    assert verdict(numbers) == "open"
    assert numbers["negatives"] == list(MINERS)
    assert all(0 < p <= 1 for p in numbers["probe"])
    assert len(figure(numbers).axes) == 1
