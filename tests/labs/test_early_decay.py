"""Too-early decay: the measured losses are those of the closed form, and the verdict can fall the other way."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import early_decay
from descend.labs._evidence import judge_seed
from descend.labs.early_decay import CURVATURES, CUTS, NOISE, START, STEPS, descend, figure, measure, name, rates
from tests.close import close

verdict = partial(judge_seed, early_decay)

SLUG = "elementary-decay-schedules"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.33)


def expected(cut: int) -> float:
    """E ½ Σ λ θ² at the end: mean and variance of each direction obey a recursion of their own."""
    mean, variance = torch.full_like(CURVATURES, START), torch.zeros_like(CURVATURES)
    for eta in rates(cut):
        keep = 1 - eta * CURVATURES
        mean, variance = keep * mean, keep**2 * variance + (eta * NOISE) ** 2 * CURVATURES
    return float(0.5 * (CURVATURES * (mean**2 + variance)).sum())


@pytest.mark.system("elementary-decay-schedules", "too-early")
@pytest.mark.system(SLUG)
def test_the_ends_are_those_of_the_closed_form(numbers: dict[str, Any]) -> None:
    ends = descend(200, seed=1)[:, :, -1]
    for k, cut in enumerate(CUTS):
        error = float(ends[k].std()) / 200**0.5
        assert abs(numbers["end"][name(cut)] - expected(cut)) < 4 * error
        assert error < 0.1 * expected(cut)


@pytest.mark.system("elementary-decay-schedules", "too-early")
@pytest.mark.system(SLUG)
def test_the_early_cut_drops_and_then_ends_worse(numbers: dict[str, Any]) -> None:
    """DLN-A.86: lower than the uncut run soon after, higher than every later cut at the end."""
    assert verdict(numbers) == "supported"
    at = numbers["step"].index(100)
    assert numbers["cut_50"][at] < numbers["never"][at]
    assert numbers["end"]["cut_50"] > max(numbers["end"][name(cut)] for cut in CUTS[1:-1])
    assert numbers["end"]["cut_500"] < numbers["end"]["never"]  # not cutting at all is no answer either


@pytest.mark.system(SLUG)
def test_one_cut_only() -> None:
    found = rates(50)
    close(torch.tensor(found), torch.tensor([0.5] * 50 + [0.05] * (STEPS - 50)))
    assert set(rates(STEPS)) == {0.5}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"early_drop": -1.0}, "refuted"),
        ({"early_costs": [0.5, -0.5, 0.5]}, "refuted"),
        ({"early_drop": 0.0}, "open"),
    ],
)
def test_doctored_numbers(numbers: dict[str, Any], change: dict[str, Any], said: str) -> None:
    assert verdict({**deepcopy(numbers), **change}) == said


def test_figure_and_seed(numbers: dict[str, Any]) -> None:
    assert len(figure(numbers).axes[0].get_lines()) == len(CUTS)
    assert torch.equal(descend(2, 3), descend(2, 3))
    assert not torch.equal(descend(2, 3), descend(2, 4))
