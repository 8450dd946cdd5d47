from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from descend.labs import dying_relu
from descend.labs._evidence import judge_seed
from descend.labs.dying_relu import NAMES, figure, measure, train
from tests.close import close

verdict = partial(judge_seed, dying_relu)

SLUG = "dying-relu"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=1.0)


@pytest.mark.system(SLUG)
def test_dead_relu_units_stay_dead_and_others_come_back(numbers: dict[str, Any]) -> None:
    rows = {name: [numbers[k][i] for k in ("gradient", "recovered")] for i, name in enumerate(NAMES)}
    assert rows["relu"] == [0, 0]
    assert all(gradient > 0 and back > 0 for name, (gradient, back) in rows.items() if name != "relu")
    assert rows["elu"][1] > 0.5
    after = dict(zip(NAMES, numbers["silent_after"], strict=True))
    assert after["relu"] >= numbers["silent_at_start"][0] > 0.3 > after["elu"]


@pytest.mark.system("dying-relu", "experiment")
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_relu_stays_dead_and_the_others_come_back_on_every_seed(seed: int) -> None:
    for name in NAMES:
        found = train(name, seed, bias=dying_relu.BIAS)
        assert found["silent_at_start"] > 0.3
        assert (found["gradient"] == 0) == (found["recovered"] == 0) == (name == "relu")


@pytest.mark.system(SLUG)
def test_a_large_learning_rate_kills(numbers: dict[str, Any]) -> None:
    dead = numbers["by_rate"]["dead"]
    assert dead[0] == 0 < dead[-1]


@pytest.mark.system(SLUG)
def test_a_deeper_dead_unit_may_come_back(numbers: dict[str, Any]) -> None:
    """S940 says never: that holds for units that see the data, not for those above a layer that learns."""
    assert numbers["recovered_in_a_second_layer"] > 0


def test_the_numbers_depend_on_the_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dying_relu, "STEPS", 5)
    assert train("elu", 3) == train("elu", 3) != train("elu", 4)


def test_verdicts(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    for name, i, value in (("gradient", 0, 1e-9), ("recovered", 0, 0.1), ("gradient", 1, 0.0), ("recovered", 3, 0.0)):
        doctored = deepcopy(numbers)
        doctored[name][i] = value
        assert verdict(doctored) == "refuted"
    nothing = deepcopy(numbers)
    nothing["silent_at_start"] = [0.0] * 4
    assert verdict(nothing) == "open"


def test_figure(numbers: dict[str, Any]) -> None:
    left, right = figure(numbers).axes
    assert len(left.patches) == 2 * len(NAMES)
    close(right.get_lines()[0].get_ydata(), numbers["by_rate"]["dead"])
