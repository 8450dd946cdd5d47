from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest

from descend.labs import word_analogies
from descend.labs._evidence import judge_seed
from descend.labs.word_analogies import figure, measure

verdict = partial(judge_seed, word_analogies)


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.1)


@pytest.mark.system("embedding-analogies")
def test_learned_vectors_answer_far_above_chance(numbers: dict[str, Any]) -> None:
    assert len(numbers["accuracy"]) == 2
    assert min(numbers["accuracy"]) > 0.5 > 10 * numbers["chance"]
    assert min(numbers["right_gender"]) > 0.8


@pytest.mark.system("embedding-geometry")
@pytest.mark.system("skip-gram")
def test_interchangeable_words_are_nearer_and_centring_rounds_the_cloud(numbers: dict[str, Any]) -> None:
    assert all(w > b for w, b in zip(numbers["within"], numbers["between"], strict=True))
    assert all(abs(c) < 0.05 < a for c, a in zip(numbers["centred_anisotropy"], numbers["anisotropy"], strict=True))


def test_verdicts(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    for name, value in (("accuracy", 0.1), ("within", -1.0), ("right_gender", 0.0)):
        doctored = deepcopy(numbers)
        doctored[name] = [value, value]
        assert verdict(doctored) == "refuted"
    assert verdict({**numbers, "accuracy": [1.0]}) == "open"


@pytest.mark.system("embedding-analogies", "map")
def test_figure(numbers: dict[str, Any]) -> None:
    left, right = figure(numbers).axes
    assert len(right.texts) == len(numbers["words"])
    assert np.array_equal(left.get_lines()[0].get_ydata(), numbers["accuracy"])


@pytest.mark.system("embedding-analogies", "planted")
@pytest.mark.system("embedding-geometry", "learned")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_claim_holds_on_every_seed(seed: int) -> None:
    found = measure(seed, budget=0.1)
    assert verdict(found) == "supported"
    assert min(found["accuracy"]) > 0.5 > 10 * found["chance"]
    assert all(w > b for w, b in zip(found["within"], found["between"], strict=True))
