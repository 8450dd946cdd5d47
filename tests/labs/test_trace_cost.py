from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from descend.labs import trace_cost
from descend.labs._evidence import judge_seed
from descend.labs.trace_cost import SIZES, figure, measure

verdict = partial(judge_seed, trace_cost)


@pytest.fixture(scope="module", params=[0, 1, 2])
def numbers(request: pytest.FixtureRequest) -> dict[str, Any]:
    return measure(seed=request.param, budget=2.0)


@pytest.mark.system("hutchinson-trace", "cost", "passes")
def test_passes_and_time_over_the_dimension(numbers: dict[str, Any]) -> None:
    assert numbers["exact trace"]["passes"] == numbers["general determinant"]["passes"] == list(SIZES)
    assert numbers["estimated trace"]["passes"] == [1] * len(SIZES)
    assert numbers["triangular determinant"]["passes"] == [0] * len(SIZES)
    assert max(map(abs, numbers["bias"])) < 4
    assert verdict(numbers) == "supported"


def test_verdicts(numbers: dict[str, Any]) -> None:
    doctored = deepcopy(numbers)
    doctored["estimated trace"]["passes"][1] = 2
    assert verdict(doctored) == "refuted"
    assert verdict({**numbers, "bias": [9.0]}) == "refuted"
    doctored = deepcopy(numbers)
    doctored["exact trace"]["seconds"][-1] = doctored["estimated trace"]["seconds"][-1]
    assert verdict(doctored) == "open"


def test_figure(numbers: dict[str, Any]) -> None:
    assert len(figure(numbers).axes[0].lines) == 4
