"""Dropout as an ensemble: exact for one layer, near for more."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import dropout_ensemble
from descend.labs._evidence import judge_seed
from descend.labs.dropout_ensemble import figure, measure, network
from tests.close import close

verdict = partial(judge_seed, dropout_ensemble)

pytestmark = pytest.mark.system("dropout")


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.07)


@pytest.mark.system("dropout", "ensemble")
def test_the_claim_is_supported(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    assert numbers["masks"] == [16, 256, 4096]
    assert numbers["geometric"][0] < 1e-14 < 0.01 < numbers["geometric"][1] < numbers["geometric"][2]


def test_the_test_network_is_the_plain_network() -> None:
    x, w, head = (torch.randn(*s, dtype=torch.float64) for s in ((4,), (4, 4), (3, 4)))
    masks = torch.full((1, 2, 4), 0.5, dtype=torch.float64)
    close(network(x, [w], head, masks)[0], head @ torch.tanh(w @ x))


@pytest.mark.parametrize(
    ("name", "at", "value", "expected"),
    [("worst", 0, 1e-6, "refuted"), ("geometric", 1, 0.0, "refuted"), ("geometric", 2, 0.9, "refuted")],
)
def test_doctored_numbers_refute(numbers: dict[str, Any], name: str, at: int, value: float, expected: str) -> None:
    doctored = deepcopy(numbers)
    doctored[name][at] = value
    assert verdict(doctored) == expected


def test_noise_leaves_it_open(numbers: dict[str, Any]) -> None:
    doctored = deepcopy(numbers)
    doctored["geometric"][2] = doctored["single"][2]
    assert verdict(doctored) == "open"


def test_figure(numbers: dict[str, Any]) -> None:
    assert len(figure(numbers).axes) == 1
