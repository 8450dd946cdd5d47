from __future__ import annotations

import json
from functools import partial

import pytest

from descend.labs import transfer
from descend.labs._evidence import judge_seed
from descend.labs.transfer import figure, measure

verdict = partial(judge_seed, transfer)

GOOD = {
    "steps": 300, "tested": 600, "labels": [1, 2, 5, 10], "chance": 1 / 24, "source": 0.98,
    "scratch": [0.1, 0.2, 0.4, 0.6], "probe": [0.4, 0.5, 0.6, 0.65], "tuned": [0.45, 0.55, 0.7, 0.8],
}  # fmt: skip


@pytest.mark.system("transfer-learning")
def test_a_short_measurement() -> None:
    numbers = measure(seed=0, budget=0.2)
    assert verdict(numbers) == "open"
    assert [len(numbers[way]) for way in ("scratch", "probe", "tuned")] == [4, 4, 4]
    json.dumps(numbers)


@pytest.mark.system("transfer-learning")
def test_verdict_and_figure() -> None:
    assert verdict(GOOD) == "supported"
    assert verdict({**GOOD, "probe": [0.1, 0.5, 0.6, 0.65]}) == "refuted"
    assert verdict({**GOOD, "tuned": [0.45, 0.55, 0.41, 0.8]}) == "refuted"
    assert verdict({**GOOD, "scratch": [0.4, 0.4, 0.4, 0.4], "tuned": [0.6, 0.6, 0.6, 0.9]}) == "refuted"
    assert len(figure(GOOD).axes[0].get_lines()) == 4
