"""The batch size: the closed form of the variance, the verdict on measured rounds, and numbers that refute it."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch
from torch.nn.functional import one_hot

from descend.labs import batch_size
from descend.labs import batch_size as lab
from descend.labs._evidence import judge_seed
from descend.labs.batch_size import WAYS, exponent, figure, measure, run, split, variance
from descend.optim.batches import variance_with_replacement

verdict = partial(judge_seed, batch_size)

SLUG = "stochastic-and-minibatch-gd"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    """Three rounds to an earlier target, which is faster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab, "TARGET", 1.0)
        patch.setattr(lab, "DRAWS", 200)
        return measure(seed=0, budget=1.0)


@pytest.mark.system("training-loop", "variance")
@pytest.mark.system("stochastic-and-minibatch-gd", "batch-size-sweep")
@pytest.mark.system(SLUG)
def test_the_variance_is_that_of_the_closed_form() -> None:
    data = split(torch.Generator().manual_seed(0))
    each = data.x[:, :, None] * (0.1 - one_hot(data.y, 10))[:, None]  # at w = 0 every p is 1/10
    for batch in (4, 64):
        expected = variance_with_replacement(each.flatten(1), batch).sum().item()
        assert variance(data, batch, torch.Generator().manual_seed(1)) == pytest.approx(expected, rel=0.1)


@pytest.mark.system("stochastic-and-minibatch-gd", "batch-size-sweep", "scaling-and-warmup")
@pytest.mark.system("gradient-descent", "against-mini-batches")
@pytest.mark.system(SLUG)
def test_the_claim_is_supported_in_every_round(numbers: dict[str, Any]) -> None:
    assert numbers["rounds"] == 3
    assert verdict(numbers) == "supported"
    small, large = numbers["batch"][0], numbers["batch"][2]
    assert numbers["examples_one_rate"][2] > 0.8 * large / small * numbers["examples_one_rate"][0]
    assert numbers["examples_scaled"][2] < 1.3 * numbers["examples_scaled"][0]
    assert all(numbers[f"steps_{way}"][3] < lab.MOST for way in WAYS)
    assert max(numbers["error_one_rate"]) < 0.3
    json.dumps(numbers)


@pytest.mark.system("stochastic-and-minibatch-gd", "scaling-and-warmup")
@pytest.mark.system(SLUG)
def test_a_warmup_holds_the_first_steps_back() -> None:
    data = split(torch.Generator().manual_seed(0))
    scaled, warmed = (run(data, 64, way, torch.Generator().manual_seed(0)) for way in ("scaled", "warmed_up"))
    assert scaled.steps < warmed.steps < scaled.steps + lab.WARMUP
    assert scaled.examples == 64 * scaled.steps


def test_exponents() -> None:
    assert exponent([1.0, 4.0, 16.0, 64.0]) == pytest.approx(1.0)
    assert exponent([8.0, 2.0]) == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda n: n.update(exponent_of_variance=-0.9), "refuted"),
        (lambda n: n["exponent_of_steps_one_rate"].append(-0.5), "refuted"),
        (lambda n: n["exponent_of_steps_scaled"].append(-0.5), "refuted"),
        (lambda n: n.update(rounds=2), "open"),
    ],
)
def test_other_numbers_give_another_verdict(
    numbers: dict[str, Any], change: Callable[[dict[str, Any]], None], said: str
) -> None:
    doctored = deepcopy(numbers)
    change(doctored)
    assert verdict(doctored) == said


def test_figure(numbers: dict[str, Any]) -> None:
    left, middle, right = figure(numbers).axes
    assert list(left.get_lines()[0].get_ydata()) == numbers["variance"]
    assert len(middle.get_lines()) == len(right.get_lines()) == len(WAYS)
