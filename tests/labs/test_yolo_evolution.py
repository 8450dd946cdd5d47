"""The lab of YOLO's changes: what can be counted is measured on three seeds; the verdict reads the numbers."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import yolo_evolution
from descend.labs._evidence import judge_seed
from descend.labs.yolo_evolution import (
    BATCH,
    SMALL,
    count_stages,
    draw,
    figure,
    formulations,
    learn_two_labels,
    measure,
)
from descend.ops.boxes import area
from tests.close import close

verdict = partial(judge_seed, yolo_evolution)

SLUG = "yolo-evolution"
pytestmark = pytest.mark.system(SLUG)


@pytest.mark.system(SLUG, "negative-sizes")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_only_direct_sizes_are_negative(seed: int) -> None:
    torch.manual_seed(seed)
    x, _ = draw(BATCH, seed)
    for name, (model, _) in formulations((8.0,) * 12).items():
        with torch.no_grad():
            boxes = model.eval()(x).boxes
        negative = float((boxes[..., 2:] < boxes[..., :2]).float().mean())
        assert (negative > 0.01) is (name == "v1")


@pytest.mark.system(SLUG, "multi-label")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_labels(seed: int) -> None:
    close(learn_two_labels(seed, "softmax"), 2 * math.log(2), loosen=100)  # the optimizer's accuracy
    assert learn_two_labels(seed, "logistic") < 0.01


@pytest.mark.system(SLUG, "csp")
def test_the_cost_of_a_stage() -> None:
    """8 units: 5 · 8 C² of a plain stage; 2.5 · 8 + 1 + 1 of its CSP form."""
    plain, csp = count_stages(32, 8)
    unit = 32 * 32 * 8 * 8
    assert (plain, csp) == (40 * unit, 22 * unit)


def test_scenes_with_small_objects() -> None:
    x, truth = draw(64, 0)
    real = truth.classes >= 0
    small = area(truth.boxes)[real] < SMALL
    assert x.shape == (64, 3, 64, 64)
    assert 0.3 < float(small.float().mean()) < 0.7


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.1)


def test_a_short_run(numbers: dict[str, Any]) -> None:
    assert numbers["version"] == ["v1", "v2", "v3", "v4"]
    assert numbers["anchors_kmeans"] > numbers["anchors_even"]
    assert verdict(numbers) == "open"
    assert len(figure(numbers).axes[0].patches) == 12


def test_the_verdict_reads_the_numbers(numbers: dict[str, Any]) -> None:
    learned = {**deepcopy(numbers), "steps": 300, "map50": [0.1, 0.3, 0.4, 0.4], "small": [0.0, 0.2, 0.3, 0.3]}
    assert verdict(learned) == "supported"
    for change in (
        {"negative": [0.0, 0.0, 0.0, 0.0]},
        {"negative": [0.3, 0.1, 0.0, 0.0]},
        {"small": [0.3, 0.3, 0.3, 0.3]},
        {"two_labels_softmax": 0.5},
        {"two_labels_logistic": 0.5},
        {"products_csp": numbers["products_plain"]},
        {"anchors_kmeans": 0.1},
    ):
        assert verdict({**learned, **change}) == "refuted", change
    assert verdict({**learned, "map50": [0.1, 0.1, 0.1, 0.1]}) == "open"
