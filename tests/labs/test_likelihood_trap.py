from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from descend.labs import likelihood_trap
from descend.labs._evidence import judge_seed
from descend.labs.likelihood_trap import SAMPLERS, figure, measure

verdict = partial(judge_seed, likelihood_trap)

SLUG = "likelihood-trap"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=2.0)


@pytest.mark.system(SLUG)
def test_probable_text_repeats_itself(numbers: dict[str, Any]) -> None:
    """DLN-B.77: beam text is more probable to the model than held-out text; distinct-n is lower than with top-p."""
    log_p = dict(zip(numbers["text"], numbers["log_p"], strict=True))
    varied = dict(zip(numbers["text"], numbers["distinct_3"], strict=True))
    for trapped in ("greedy", "beam 4"):
        assert log_p[trapped] > log_p["held-out text"] + 0.5
        assert varied[trapped] < 0.5 * varied["top-p 0.9"]
    assert log_p["beam 4"] >= log_p["greedy"] - 0.05
    assert verdict(numbers) == "supported"
    assert len(numbers["text"]) == len(SAMPLERS) + 2
    json.dumps(numbers)


def test_verdict_and_figure(numbers: dict[str, Any]) -> None:
    n = len(numbers["text"])
    assert verdict({**numbers, "distinct_3": [0.9] * n}) == "refuted"
    assert verdict({**numbers, "log_p": [-4.0] * n}) == "refuted"
    assert verdict({**numbers, "steps": 10}) == "open"
    assert len(figure(numbers).axes[0].get_lines()) == n
