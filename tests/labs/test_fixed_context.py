"""The lab runs at a small budget, and judges by the numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from descend.labs import fixed_context
from descend.labs._evidence import judge_seed
from descend.labs.fixed_context import LENGTHS, figure, measure

verdict = partial(judge_seed, fixed_context)

pytestmark = [pytest.mark.system("rnn-encoder-decoder"), pytest.mark.system("rnn-attention-decoder")]
FOUND: dict[str, Any] = {
    "length": list(LENGTHS),
    "fixed": [0.99, 0.9, 0.8, 0.7, 0.6, 0.5, 0.5],
    "attention": [1.0] * 7,
    "chance": 0.05,
}


def test_it_measures() -> None:
    numbers = measure(seed=0, budget=0.15)
    assert verdict(numbers) == "open"  # nothing is learned in so few steps
    assert len(numbers["fixed"]) == len(numbers["attention"]) == len(LENGTHS)
    assert len(figure(numbers).axes) == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "supported"),
        ({"attention": [1.0] * 6 + [0.8]}, "open"),
        ({"fixed": [0.99] * 7}, "refuted"),
    ],
)
def test_verdicts(changes: dict[str, Any], expected: str) -> None:
    assert verdict(FOUND | changes) == expected
