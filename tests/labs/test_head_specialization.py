from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import head_specialization
from descend.labs._evidence import judge_seed
from descend.labs.head_specialization import ROLES, figure, match_roles, measure, texts

verdict = partial(judge_seed, head_specialization)

SLUG = "attention-head-and-layer-probes"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=1.15)


@pytest.mark.system(SLUG, "heads")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_three_heads_share_three_relations(seed: int, numbers: dict[str, Any]) -> None:
    numbers = measure(seed, budget=1.15) if seed else numbers
    assert verdict(numbers) == "supported", numbers
    assert match_roles(numbers["weights"]["3"]) > 0.5
    assert max(numbers["weights"]["1"][0]) < 0.9, "one head spreads its weight"
    json.dumps(numbers)


@pytest.mark.system(SLUG)
def test_each_role_stands_once(numbers: dict[str, Any]) -> None:
    _, roles, places = texts(100, torch.Generator().manual_seed(0))
    for role in range(len(ROLES)):
        assert ((roles == role).sum(1) == 1).all()
        assert torch.equal((roles == role).int().argmax(1), places[:, role])


def test_verdict_and_figure(numbers: dict[str, Any]) -> None:
    assert verdict({**numbers, "accuracy": [0.98, 1.0]}) == "refuted"
    assert verdict({**numbers, "weights": {"3": [[0.9, 0, 0]] * 3}}) == "refuted"
    assert verdict({**numbers, "steps": 20}) == "open"
    assert match_roles([[0, 1.0, 0], [0, 0, 0.8], [0.9, 0, 0]]) == 0.8
    assert len(figure(numbers).axes) == 2
