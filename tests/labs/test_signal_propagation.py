from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import signal_propagation
from descend.labs._evidence import judge_seed
from descend.labs.signal_propagation import DEPTH, KINDS, figure, measure, propagate, unit_spread
from descend.nn.init import normal_
from tests.close import close

verdict = partial(judge_seed, signal_propagation)

SLUG = "signal-propagation-lab"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.45)


@pytest.mark.system("signal-propagation-lab", "factors")
@pytest.mark.system(SLUG)
def test_factors_agree_with_the_closed_form(numbers: dict[str, Any]) -> None:
    assert numbers["factor"] == [0.25, 0.5, 1.0, 4.0, 1.0, 1.0]
    for i, name in enumerate(numbers["net"]):
        for way in ("signal", "gradient"):
            gap = abs(numbers[way][i] - numbers["factor"][i])
            assert (gap < 5 * numbers[f"{way}_error"][i]) == ("tanh" not in name), (name, way)


@pytest.mark.system("signal-propagation-lab", "xavier-decay")
@pytest.mark.system(SLUG)
def test_xavier_decays_as_two_to_the_depth(numbers: dict[str, Any]) -> None:
    """DLN-Init-relu-propagation; in the logarithm, where the spread of a few nets is about 1."""
    for way, last, first in (("signal", -1, 0), ("gradient", 0, -1)):
        curves = numbers["curves"][way]
        ends = {name: math.log(values[last] / values[first]) for name, values in curves.items()}
        assert abs(ends["xavier, relu"] + DEPTH * math.log(2)) < 3
        assert abs(ends["he, relu"]) < 3
        assert ends["small, relu"] < -60 < 60 < ends["large, relu"]


@pytest.mark.system(SLUG)
def test_tanh_falls_slowly(numbers: dict[str, Any]) -> None:
    """Second moment about 1/(2 l): near 0.01 after 50 layers, not near 1 (VOM) and not 2^-50."""
    assert 0.005 < numbers["curves"]["signal"]["xavier, tanh"][-1] < 0.02


@pytest.mark.system("signal-propagation-lab", "symmetry")
@pytest.mark.system(SLUG)
def test_equal_units_stay_equal(numbers: dict[str, Any]) -> None:
    assert numbers["spread_of_equal_units"] == 0
    assert numbers["spread_of_random_units"] > 0.1
    assert unit_spread(normal_, torch.Generator().manual_seed(3)) > 0.1


@pytest.mark.system("signal-propagation-lab", "half-precision")
@pytest.mark.system(SLUG)
def test_half_precision_overflows(numbers: dict[str, Any]) -> None:
    """z grows by 2 a layer; the largest of 2048 numbers is about 3.5: 3.5 · 2^l > 65504 from l = 15 on."""
    assert 13 <= numbers["half_overflows_at_layer"] <= 17


@pytest.mark.system("layer-norm")
@pytest.mark.system("layer-norm", "drift")
def test_layer_norm_stops_the_drift(numbers: dict[str, Any]) -> None:
    """VOM-B.19: mean 0 and deviation 1 after every layer; without it the stream grows as 1.25^(l/2)."""
    plain, normed = numbers["drift"]["plain"], numbers["drift"]["layer norm"]
    close(normed, [1.0] * DEPTH, loosen=5)  # ε = 1e-5
    assert abs(math.log(plain[-1]) - DEPTH / 2 * math.log(1.25)) < 1
    assert plain[-1] > plain[10] > plain[0]


def test_the_numbers_depend_on_the_seed_alone() -> None:
    rule, f, _ = KINDS["he, relu"]
    a, b, c = (propagate(rule, f, torch.Generator().manual_seed(s))[0] for s in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_verdicts(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    for name in ("signal", "gradient"):
        doctored = deepcopy(numbers)
        doctored[name][1] = 1.0  # Xavier that would keep the signal
        assert verdict(doctored) == "refuted"
    broken = deepcopy(numbers)
    broken["spread_of_equal_units"] = 0.1
    assert verdict(broken) == "refuted"
    broken = deepcopy(numbers)
    broken["drift"]["layer norm"][-1] = 2.0
    assert verdict(broken) == "refuted"
    noisy = deepcopy(numbers)
    noisy["signal_error"][2] = 0.2
    assert verdict(noisy) == "open"


def test_figure(numbers: dict[str, Any]) -> None:
    left, middle, right = figure(numbers).axes
    assert len(left.get_lines()) == len(middle.get_lines()) == len(KINDS)
    close(right.get_lines()[0].get_ydata(), numbers["drift"]["plain"])
