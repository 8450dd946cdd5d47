from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from descend.labs import flow_passes
from descend.labs._evidence import judge_seed
from descend.labs.flow_passes import KINDS, SIZES, figure, measure

verdict = partial(judge_seed, flow_passes)


@pytest.fixture(scope="module", params=[0, 1, 2])
def numbers(request: pytest.FixtureRequest) -> dict[str, Any]:
    return measure(seed=request.param, budget=1.0)


@pytest.mark.system("inverse-autoregressive-flow", "trade-off", "passes")
@pytest.mark.system("masked-autoregressive-flow", "passes")
def test_passes_and_time_over_the_dimension(numbers: dict[str, Any]) -> None:
    assert numbers["MAF"]["density_passes"] == numbers["IAF"]["sampling_passes"] == [1] * len(SIZES)
    assert numbers["MAF"]["sampling_passes"] == numbers["IAF"]["density_passes"] == list(SIZES)
    assert max(max(numbers[kind]["round_trip_error"]) for kind in KINDS) < 1e-4
    assert verdict(numbers) == "supported"


def test_verdicts(numbers: dict[str, Any]) -> None:
    doctored = deepcopy(numbers)
    doctored["MAF"]["sampling_passes"][0] = 1
    assert verdict(doctored) == "refuted"
    doctored = deepcopy(numbers)
    doctored["IAF"]["density_seconds"][-1] = doctored["IAF"]["sampling_seconds"][-1]
    assert verdict(doctored) == "open"


def test_figure(numbers: dict[str, Any]) -> None:
    assert [len(axes.lines) for axes in figure(numbers).axes] == [3, 3]
