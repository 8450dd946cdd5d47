from __future__ import annotations

import json
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from descend.labs import q_learning_rates
from descend.labs._evidence import judge_seed
from descend.labs.q_learning_rates import CLAIM, MARKS, figure, measure

verdict = partial(judge_seed, q_learning_rates)


@pytest.fixture(scope="module")
def numbers() -> list[dict[str, Any]]:
    """Three seeds, at two thirds of the full length."""
    return [measure(seed, budget=7.0) for seed in range(3)]


@pytest.mark.system("q-learning", "converges")
@pytest.mark.system("q-learning", "off-policy")
def test_the_claim_is_supported(numbers: list[dict[str, Any]]) -> None:
    assert [verdict(found) for found in numbers] == ["supported"] * 3
    assert "0.02" in CLAIM
    json.dumps(numbers)


def test_a_short_measurement_is_open_and_repeats() -> None:
    found = measure(seed=0, budget=0.2)
    assert verdict(found) == "open"
    assert len(found["curves"]["falling"]) == MARKS
    assert measure(seed=0, budget=0.2) == found


@pytest.mark.parametrize(
    ("part", "name", "value"), [("error", "falling", 0.03), ("error", "constant", 0.03), ("earned", "falling", 0.5)]
)
def test_doctored_numbers_refute(numbers: list[dict[str, Any]], part: str, name: str, value: float) -> None:
    doctored = deepcopy(numbers[0])
    doctored[part][name] = value
    assert verdict(doctored) == "refuted"
    assert verdict(numbers[0] | {"behaviour": 0.4}) == "refuted"


def test_figure(numbers: list[dict[str, Any]]) -> None:
    [axes] = figure(numbers[0]).axes
    assert [line.get_label() for line in axes.get_lines()][:2] == ["falling rate", "constant rate"]
