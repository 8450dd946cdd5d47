from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from descend.labs import residual_and_ode
from descend.labs._evidence import judge_seed
from descend.labs.residual_and_ode import LAYERS, SHOWN, figure, measure

verdict = partial(judge_seed, residual_and_ode)


@pytest.fixture(scope="module", params=[0, 1, 2])
def numbers(request: pytest.FixtureRequest) -> dict[str, Any]:
    return measure(seed=request.param, budget=1.0)


@pytest.mark.system("neural-ode")
@pytest.mark.system("neural-ode", "trajectories", "residual")
@pytest.mark.system("ode-solvers", "uneven-steps")
def test_a_residual_network_is_a_coarse_solution(numbers: dict[str, Any]) -> None:
    assert numbers["accuracy"] > 0.9
    assert numbers["is_the_network"]
    errors = numbers["euler"]
    assert all(a > b for a, b in pairwise(errors))
    assert 1.7 < errors[-2] / errors[-1] < 2.3
    assert numbers["adaptive"] < numbers["euler_at_equal_cost"] / 10
    lengths = np.diff(numbers["points"])
    assert lengths.max() > 1.5 * lengths.min()
    assert verdict(numbers) == "supported"


def test_verdicts(numbers: dict[str, Any]) -> None:
    assert verdict({**numbers, "is_the_network": False}) == "refuted"
    assert verdict({**numbers, "euler": numbers["euler"][::-1]}) == "refuted"
    assert verdict({**numbers, "adaptive": numbers["euler_at_equal_cost"]}) == "refuted"
    assert verdict({**numbers, "points": [0, 1, 2]}) == "refuted"


@pytest.mark.system("neural-ode", "trajectories")
def test_paths_of_both_are_shown(numbers: dict[str, Any]) -> None:
    """From the same starts, five points each of the network, and the ODE at the adaptive points."""
    network, ode = np.asarray(numbers["network_paths"]), np.asarray(numbers["ode_at_points"])
    assert network.shape == (LAYERS + 1, SHOWN, 2)
    assert ode.shape == (len(numbers["points"]), SHOWN, 2)
    assert np.array_equal(network[0], ode[0])
    left, middle, right = figure(numbers).axes
    assert (len(left.lines), len(middle.lines), len(right.lines)) == (SHOWN, 2 * SHOWN, 2)
