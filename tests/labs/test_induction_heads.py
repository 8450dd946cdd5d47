from __future__ import annotations

import json
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import induction_heads
from descend.labs._evidence import judge_seed
from descend.labs.induction_heads import (
    LENGTH,
    PERIODS,
    VOCAB,
    AttentionOnly,
    figure,
    head_scores,
    mark_repeats,
    measure,
    texts,
)

verdict = partial(judge_seed, induction_heads)

SLUG = "induction-heads"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=1.55)


@pytest.mark.system(SLUG, "texts")
@pytest.mark.system(SLUG)
def test_texts_repeat_with_their_period() -> None:
    x, y, p = texts(50, torch.Generator().manual_seed(0))
    assert torch.equal(x[:, 1:], y[:, :-1])
    assert {int(p.min()), int(p.max())} == set(PERIODS)
    for row, period in zip(x, p.flatten().tolist(), strict=True):
        assert torch.equal(row[period:], row[:-period])
        assert len(row[:period].unique()) == period, "no token twice in a period: the next one can be known"


@pytest.mark.system(SLUG)
def test_two_layers_learn_it_and_one_does_not(numbers: dict[str, Any]) -> None:
    one, two = numbers["loss"]
    assert two < one - 0.5
    assert numbers["accuracy"][1] > 2 * numbers["accuracy"][0]
    assert numbers["chance"] * VOCAB == pytest.approx(1)
    assert numbers["induction"][1] > 2 * numbers["induction"][0], "and a head looks at the token after the earlier one"
    assert max(numbers["heads"][1]["induction"][1]) == numbers["induction"][1], "it is in the second layer"
    json.dumps(numbers)


@pytest.mark.system(SLUG, "score")
@pytest.mark.system(SLUG)
def test_scores_of_heads_that_look_everywhere_alike() -> None:
    """With scores of 0 a position gives each of i + 1 keys the same share."""
    model = AttentionOnly(1)
    with torch.no_grad():
        model.layers[0].q.weight.zero_()
        model.layers[0].q.bias.zero_()
        model.biases[0].table.weight.zero_()
    x, _, p = texts(20, torch.Generator().manual_seed(1))
    found = head_scores(model, x, p)
    known = mark_repeats(p)
    i = torch.arange(LENGTH).expand_as(known)
    assert found["previous"][0][0] == pytest.approx(float((1 / (i + 1.0))[known].mean()), rel=1e-4)
    expected = ((i + 1) // p / (i + 1.0))[known].mean()  # keys i + 1 − p, i + 1 − 2p, … ≥ 0
    assert found["induction"][0][1] == pytest.approx(float(expected), rel=1e-4)


def good() -> dict[str, Any]:
    return {"steps": 400, "accuracy": [0.15, 0.97], "induction": [0.1, 0.8]}


@pytest.mark.parametrize(("name", "values"), [("accuracy", [0.15, 0.6]), ("accuracy", [0.6, 0.97]),
                                              ("induction", [0.1, 0.2]), ("induction", [0.7, 0.8])])  # fmt: skip
def test_doctored_numbers_refute(name: str, values: list[float]) -> None:
    assert verdict(good()) == "supported"
    assert verdict({**good(), name: values, "steps": 1000}) == "refuted"
    assert verdict({**good(), "steps": 50}) == "open"


def test_two_layers_that_have_not_learned_yet_refute_nothing() -> None:
    assert verdict({**good(), "accuracy": [0.15, 0.6]}) == "open"
    assert verdict({**good(), "accuracy": [0.6, 0.97]}) == "refuted"


def test_figure(numbers: dict[str, Any]) -> None:
    left, right = figure(deepcopy(numbers)).axes
    assert len(left.get_lines()) == 2
    assert len(right.patches) == 12
