from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from descend.labs import flow_moons
from descend.labs._evidence import judge_seed
from descend.labs.flow_moons import figure, measure

verdict = partial(judge_seed, flow_moons)


@pytest.fixture(scope="module", params=[0, 1, 2])
def numbers(request: pytest.FixtureRequest) -> dict[str, Any]:
    return measure(seed=request.param, budget=2.5)


@pytest.mark.system("realnvp")
@pytest.mark.system("realnvp", "two-moons")
def test_four_layers_beat_a_gaussian_and_not_the_truth(numbers: dict[str, Any]) -> None:
    assert numbers["exact"] < numbers["flow"] < numbers["gaussian"] - 0.4
    assert numbers["near"] > max(0.85, numbers["near_gaussian"] + 0.1)
    assert abs(numbers["entropy"] - 1.0076) < 1e-3
    assert verdict(numbers) == "supported"


@pytest.mark.system("realnvp", "stages")
def test_the_gaussian_the_four_stages_and_the_data_are_shown(numbers: dict[str, Any]) -> None:
    assert [axes.get_title("left") for axes in figure(numbers).axes] == [
        "Gaussian", "horizontal", "vertical", "horizontal", "vertical", "data",
    ]  # fmt: skip
    noise, first, second, *_ = numbers["stages"]
    moved = [[a != b for a, b in zip(p, q, strict=True)] for p, q in zip(noise, first, strict=True)]
    assert all(x and not y for x, y in moved)
    assert all(p[0] == q[0] for p, q in zip(first, second, strict=True))


def test_verdicts(numbers: dict[str, Any]) -> None:
    assert verdict({**numbers, "flow": numbers["exact"] - 0.01}) == "refuted"
    assert verdict({**numbers, "flow": numbers["gaussian"] + 0.01}) == "refuted"
    assert verdict({**numbers, "near": 0.5}) == "open"
    assert verdict({**numbers, "flow": numbers["gaussian"] - 0.1}) == "open"
