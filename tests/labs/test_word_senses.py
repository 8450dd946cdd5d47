from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from descend.labs.word_senses import figure, measure, verdict

SLUG = "static-versus-contextual"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.1)


@pytest.mark.system("static-versus-contextual", "static")
@pytest.mark.system(SLUG)
def test_static_vectors_are_equal_and_contextual_ones_are_not(numbers: dict[str, Any]) -> None:
    for when in ("before", "after"):
        assert numbers[when]["static_difference"] == 0
        assert numbers[when]["static_probe"] == 0.5
        assert numbers[when]["contextual_difference"] > 0
        assert numbers[when]["cosine"] < 1


@pytest.mark.system(SLUG)
def test_after_training_the_sense_is_told_and_its_words_are_near(numbers: dict[str, Any]) -> None:
    assert numbers["after"]["probe"] > 0.95
    assert numbers["after"]["own_sense"] > 0.5 > numbers["before"]["own_sense"]
    assert numbers["after"]["cosine"] < 0.5 < numbers["before"]["cosine"]


def test_verdicts(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    doctored = (
        ("static_difference", 1e-9, "refuted"),
        ("contextual_difference", 0.0, "refuted"),
        ("probe", 0.6, "open"),
        ("own_sense", -0.1, "refuted"),
    )
    for name, value, said in doctored:
        changed = deepcopy(numbers)
        changed["after"][name] = value
        assert verdict(changed) == said


def test_figure(numbers: dict[str, Any]) -> None:
    before, after = figure(numbers).axes
    assert sum(np.size(line.get_xdata()) for line in after.get_lines()) == len(numbers["after"]["sense"])
    assert "probe" in before.get_title(loc="left")
