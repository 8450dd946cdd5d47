from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import attention_lookup
from descend.labs._evidence import judge_seed
from descend.labs.attention_lookup import PAIRS, ByContent, ByPlace, Reader, accuracy, figure, measure, texts

verdict = partial(judge_seed, attention_lookup)

SLUG = "attention-properties"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=1.03)


@pytest.mark.system(SLUG, "lookup")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_attention_looks_up_and_a_fixed_mixing_does_not(seed: int, numbers: dict[str, Any]) -> None:
    numbers = measure(seed, budget=1.03) if seed else numbers
    assert verdict(numbers) == "supported", numbers
    json.dumps(numbers)


@pytest.mark.system(SLUG, "one-length")
@pytest.mark.system(SLUG)
def test_the_fixed_layer_cannot_take_another_length() -> None:
    assert accuracy(Reader(ByPlace(PAIRS + 1)), 2 * PAIRS, 0) is None
    assert accuracy(Reader(ByContent()), 2 * PAIRS, 0) is not None


@pytest.mark.system(SLUG)
def test_the_answer_belongs_to_the_asked_key() -> None:
    keys, values, y = texts(100, 6, torch.Generator().manual_seed(0))
    at = (keys[:, :-1] == keys[:, -1:]).int().argmax(1)
    assert torch.equal(values.gather(1, at[:, None]).squeeze(1), y)
    assert ((keys[:, :-1] == keys[:, -1:]).sum(1) == 1).all()


def test_verdict_and_figure(numbers: dict[str, Any]) -> None:
    assert verdict({**numbers, "at_8": [0.5, 0.3]}) == "refuted"
    assert verdict({**numbers, "at_8": [1.0, 0.8]}) == "refuted"
    assert verdict({**numbers, "at_16": [0.3, None]}) == "refuted"
    assert verdict({**numbers, "steps": 20}) == "open"
    assert len(figure(numbers).axes[0].patches) == 4
