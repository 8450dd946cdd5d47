"""The lab runs at a small budget, and judges by the numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import long_distance
from descend.labs._evidence import judge_seed
from descend.labs.long_distance import DISTANCES, draw, figure, measure

verdict = partial(judge_seed, long_distance)

pytestmark = [
    pytest.mark.system("sequence-property-probes"),
    pytest.mark.system("vanishing-exploding-in-time"),
    pytest.mark.system("lstm-gradient-highway"),
]
STATES = {"change of h": 0.2, "change of c": 0.1, "subject from h": 0.8, "subject from c": 1.0}
FOUND: dict[str, Any] = {
    "distance": list(DISTANCES),
    "RNN": [1.0, 0.6, 0.5],
    "LSTM": [1.0, 1.0, 1.0],
    "attention": [1.0, 1.0, 1.0],
    "states": STATES,
}


def test_it_measures() -> None:
    numbers = measure(seed=0, budget=0.25)
    assert numbers["attention"][-1] > 0.65  # after 20 steps: it looks at the first word, however far
    assert set(numbers["states"]) == set(STATES)
    assert len(figure(numbers).axes) == 1
    words, y = draw(5, 3, torch.Generator().manual_seed(0))
    assert words.shape == (5, 4)
    assert torch.equal(words[:, 0], y)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "supported"),
        ({"LSTM": [1.0, 1.0, 0.8]}, "open"),
        ({"LSTM": [1.0, 1.0, 0.5]}, "refuted"),
        ({"RNN": [1.0, 1.0, 1.0]}, "refuted"),
        ({"states": STATES | {"change of c": 0.3}}, "refuted"),
    ],
)
def test_verdicts(changes: dict[str, Any], expected: str) -> None:
    assert verdict(FOUND | changes) == expected


@pytest.mark.system("sequence-property-probes", "agreement")
@pytest.mark.system("vanishing-exploding-in-time", "distance-task")
@pytest.mark.system("lstm-gradient-highway", "cell-and-hidden")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_claim_holds_on_every_seed(seed: int) -> None:
    assert verdict(measure(seed, budget=0.6)) == "supported"
