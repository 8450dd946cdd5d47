"""Collapse: what each way is made of, its verdicts, and a measurement in little."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from descend.labs import collapse
from descend.labs._evidence import judge_seed
from descend.labs.collapse import WAYS, figure, make_task, measure

verdict = partial(judge_seed, collapse)


def good() -> dict[str, Any]:
    return {"ways": list(WAYS), "spread": [0.87, 0.1, 0.05, 0.85, 0.08], "steps": 60}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"spread": [0.87, 0.3, 0.05, 0.85, 0.08]}, "refuted"),
        ({"spread": [0.87, 0.1, 0.05, 0.85, 0.4]}, "refuted"),
        ({"spread": [0.3, 0.01, 0.01, 0.85, 0.08]}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**good(), **change}) == expected


@pytest.mark.system("byol")
@pytest.mark.system("simsiam")
def test_the_ways_differ_in_one_thing() -> None:
    tasks = []
    for way in WAYS:
        torch.manual_seed(0)
        tasks.append(make_task(way, 10))
    byol, bare, neither, simsiam, unstopped = tasks
    assert isinstance(bare.model.predictor, nn.Identity)
    assert not isinstance(byol.model.predictor, nn.Identity)
    assert byol.momentum == bare.momentum == 0.9
    assert neither.momentum == 0
    assert simsiam.loss_of is not unstopped.loss_of
    weights = [task.model.encoder.stem[0].conv.weight for task in tasks]
    assert all(torch.equal(weights[0], w) for w in weights)


@pytest.mark.system("byol")
@pytest.mark.system("simsiam")
def test_measured_in_little() -> None:
    numbers = measure(seed=0, budget=1.0)
    assert verdict(numbers) == "open"
    byol, bare, neither, simsiam, unstopped = numbers["spread"]
    assert max(bare, neither, unstopped) < min(byol, simsiam)  # it shows after a few steps
    assert len(figure(numbers).axes) == 1
