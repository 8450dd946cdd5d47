from __future__ import annotations

import json
from functools import partial

import pytest

from descend.labs import layer_probes
from descend.labs._evidence import judge_seed
from descend.labs.layer_probes import earliest, figure, measure

verdict = partial(judge_seed, layer_probes)

SLUG = "attention-head-and-layer-probes"
GOOD = {"steps": 300, "layer": [0, 1, 2], "token": [1.0, 1.0, 1.0], "local": [0.06, 0.7, 0.4],
        "long_range": [0.06, 0.07, 0.96], "chance": 0.05}  # fmt: skip


@pytest.mark.system(SLUG)
def test_the_token_is_in_the_embedding_and_the_answer_is_not() -> None:
    numbers = measure(seed=0, budget=0.08)
    assert verdict(numbers) == "open"
    assert numbers["token"][0] > 0.99
    assert max(numbers["local"][0], numbers["long_range"][0]) < 0.15, "chance is 0.05"
    assert len(numbers["mean_distance"]) == 2
    assert numbers["local"][1] > numbers["local"][0] + 0.05, "one step of attention brings the token before"
    json.dumps(numbers)


def test_verdict_and_figure() -> None:
    assert verdict(GOOD) == "supported"
    assert verdict({**GOOD, "long_range": [0.06, 0.9, 0.96]}) == "refuted"
    assert verdict({**GOOD, "local": [0.06, 0.1, 0.7]}) == "refuted"
    late = {**GOOD, "long_range": [0.06, 0.1, 0.2]}
    assert [verdict({**late, "steps": steps}) for steps in (300, 1000)] == ["open", "refuted"]
    assert earliest([0.1, 0.2]) == 2
    assert len(figure(GOOD).axes[0].get_lines()) == 4
