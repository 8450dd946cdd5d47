"""The lab of fine-tuned detectors: frozen parts stay, and the verdict reads the numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import detector_transfer
from descend.labs._evidence import judge_seed
from descend.labs.detector_transfer import EVALUATIONS, FIRST, SECOND, count_steps, draw, figure, measure

verdict = partial(judge_seed, detector_transfer)


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.1)


def test_the_two_sets_have_no_class_in_common() -> None:
    x, truth = draw(8, SECOND, 0)
    assert not set(FIRST) & set(SECOND)
    assert x.shape == (8, 3, 64, 64)
    assert set(truth.classes.unique().tolist()) <= {-1, 0, 1, 2}
    assert bool((truth.boxes[truth.classes >= 0][:, 2:] > truth.boxes[truth.classes >= 0][:, :2]).all())
    assert not torch.equal(x, draw(8, FIRST, 0)[0])


def test_a_short_run(numbers: dict[str, Any]) -> None:
    assert len(numbers["scratch"]) == EVALUATIONS
    assert numbers["moved_frozen"] == 0 < numbers["moved_started"]
    assert verdict(numbers) == "open"
    assert len(figure(numbers).axes[0].lines) == 4


def test_steps_to_a_score() -> None:
    assert count_steps([0.1, 0.5, 0.4, 0.6], 0.4, 100) == 50
    assert count_steps([0.1, 0.5], 0.9, 100) == 200  # never


def test_the_verdict_reads_the_numbers(numbers: dict[str, Any]) -> None:
    learned = {**numbers, "steps": 300, "scratch": [0.1, 0.6], "steps_to_best": [300, 100, 150]}
    assert verdict(learned) == "supported"
    for change in ({"steps_to_best": [300, 100, 200]}, {"moved_frozen": 1}, {"moved_started": 0}):
        assert verdict({**learned, **change}) == "refuted", change
    assert verdict({**learned, "scratch": [0.0, 0.05]}) == "open"
