from __future__ import annotations

import json
from copy import deepcopy
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from descend.labs import optimizer_race
from descend.labs import optimizer_race as lab
from descend.labs._evidence import judge_seed
from descend.labs.optimizer_race import CLAIM, RACERS, figure, measure

verdict = partial(judge_seed, optimizer_race)

SOME = ("gradient descent", "heavy ball", "Nesterov", "window of 4", "RMSProp", "Lion", "Polak-Ribière", "L-BFGS")


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    """The full length, with eight racers at their first rate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab, "RACERS", {name: (RACERS[name][0], RACERS[name][1][:1]) for name in SOME})
        return measure(seed=0, budget=5.0)


@pytest.mark.system("conjugate-gradient")
@pytest.mark.system("lbfgs")
def test_the_claim_is_supported(numbers: dict[str, Any]) -> None:
    assert numbers["gradients"] == 300
    assert verdict(numbers) == "supported"
    assert "300 gradients" in CLAIM
    json.dumps(numbers)


@pytest.mark.system("hessian-free-optimization")
@pytest.mark.system("gradient-descent")
def test_every_optimizer_runs_and_falls() -> None:
    numbers = measure(seed=1, budget=0.3)
    assert len(numbers["optimizer"]) == len(RACERS)
    assert verdict(numbers) == "open", "too short to tell"
    for place in ("valley", "bowl"):
        for name, curve in numbers["curves"][place].items():
            assert len(curve) == numbers["gradients"]
            assert curve[0] == 1
            assert curve[-1] < 0.9, (place, name)
            assert all(b <= a for a, b in pairwise(curve))
    assert measure(seed=1, budget=0.3) == numbers


@pytest.mark.parametrize(("name", "end"), [("Polak-Ribière", 0.5), ("heavy ball", 0.5)])
def test_doctored_numbers_refute(numbers: dict[str, Any], name: str, end: float) -> None:
    doctored = deepcopy(numbers)
    rows = [doctored["optimizer"].index(name)] + ([doctored["optimizer"].index("L-BFGS")] if name[0] == "P" else [])
    for row in rows:
        doctored["bowl_end"][row] = end
    assert verdict(doctored) == "refuted"


def test_figure(numbers: dict[str, Any]) -> None:
    panels = figure(numbers).axes
    assert len(panels) == 2
    assert [line.get_label() for line in panels[0].get_lines()] == list(SOME)
