from __future__ import annotations

import json
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from descend.labs import learning_rate_limit
from descend.labs import learning_rate_limit as lab
from descend.labs._evidence import judge_seed
from descend.labs.learning_rate_limit import CLAIM, figure, measure
from tests.close import close

verdict = partial(judge_seed, learning_rate_limit)


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab, "CONDITIONS", (10, 30, 100))
        return measure(seed=0, budget=0.1)


@pytest.mark.system("gradient-descent")
@pytest.mark.system("gradient-descent", "limit")
def test_the_claim_is_supported(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    assert "2/c" in CLAIM
    json.dumps(numbers)


@pytest.mark.system("gradient-descent")
@pytest.mark.system("gradient-descent", "zones")
def test_measured_factors_are_the_closed_form(numbers: dict[str, Any]) -> None:
    close(numbers["factor"], [abs(1 - x) for x in numbers["rate_times_curvature"]])


@pytest.mark.system("momentum")
@pytest.mark.system("momentum", "acceleration")
def test_momentum_turns_kappa_into_its_root(numbers: dict[str, Any]) -> None:
    """DLN-A.92. With noise the tuned heavy ball is the worse of the two."""
    assert numbers["exponent_plain"] == pytest.approx(1.0, abs=0.02)
    assert numbers["exponent_heavy_ball"] == pytest.approx(0.5, abs=0.1)
    assert numbers["noise_left_heavy_ball"] > 1.2 * numbers["noise_left_plain"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("factor", lambda v: [1.02 * x for x in v]),
        ("predicted", lambda v: [x + 0.01 for x in v]),
        ("rate_times_curvature", lambda v: [x + 0.05 for x in v]),
        ("exponent_plain", lambda v: 0.5),
        ("exponent_heavy_ball", lambda v: 1.0),
    ],
)
def test_doctored_numbers_refute(numbers: dict[str, Any], name: str, change: Any) -> None:
    doctored = deepcopy(numbers)
    doctored[name] = change(doctored[name])
    assert verdict(doctored) == "refuted"


def test_figure(numbers: dict[str, Any]) -> None:
    left, right = figure({**numbers, "condition": [10, 30, 100]}).axes
    assert left.get_xlabel() == "α c"
    close(right.get_lines()[0].get_ydata(), numbers["steps_plain"])
