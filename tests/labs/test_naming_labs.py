"""Labs on a language with names: its texts and tags, and what the verdicts of both follow."""

from __future__ import annotations

from typing import Any

import pytest

from descend.labs import _named_things as world
from descend.labs import feature_layers, masking_shares
from descend.labs._evidence import judge_seed
from descend.metrics.spans import things
from descend.nn.layer_mix import STRATEGIES

LABS = (masking_shares, feature_layers)


def test_names_are_told_by_what_stands_before() -> None:
    """Places stand behind a preposition, people never do; an article has no tag; a text is drawn again by its seed."""
    x, y = world.draw_texts(50, 3)
    assert x.shape == y.shape == (50, world.LENGTH)
    assert (world.draw_texts(50, 3)[0] == x).all()
    words = world.list_words()
    assert max(words["both"]) == world.WORDS - 1 < world.MASK
    seen = set()
    for row, tags in zip(x.tolist(), y.tolist(), strict=True):
        for first, _, kind in things([world.TAGS[tag] for tag in tags]):
            assert (first > 0 and row[first - 1] in words["preposition"]) == (kind == "place")
            assert row[first] in words[kind] or row[first] in words["both"]
            seen.add((kind, row[first] in words["both"]))
        assert all(tag == 0 for word, tag in zip(row, tags, strict=True) if word in words["article"])
    assert len(seen) == 4


@pytest.mark.parametrize("lab", LABS)
def test_they_run_through(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant, small in {"TESTED": 8, "TEXTS": 40, "DRAWS": 1}.items():
        monkeypatch.setattr(lab, constant, small, raising=False)
    numbers = lab.measure(0, 0.08)
    assert judge_seed(lab, numbers) == "open", "with so few steps nothing is said"
    found = lab.effects(numbers)
    assert {one.effect for one in (*lab.PREDICTIONS, *getattr(lab, "CONTROLS", ()))} == found.keys()
    assert lab.figure(numbers).axes


MASKS = {"masked": [3.0, 3.1], "kept": [3.0, 4.8], "frozen": [0.97, 0.5], "fine-tuned": [0.9, 0.91], "steps": 1100}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"masked": [3.2, 3.1]}, "refuted"),
        ({"kept": [3.0, 3.1]}, "refuted"),
        ({"frozen": [0.9, 0.9]}, "refuted"),
        ({"fine-tuned": [0.7, 0.9]}, "refuted"),
        ({"masked": [3.0, 4.0]}, "open"),
        ({"steps": 10}, "open"),
    ],
)
def test_verdicts_of_the_maskings(change: dict[str, Any], expected: str) -> None:
    assert judge_seed(masking_shares, {**MASKS, **change}) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"last": 0.8}, "refuted"),
        ({"fine-tuned": 0.95}, "refuted"),
        ({"from scratch": 0.69}, "open"),
    ],
)
def test_verdicts_of_the_layers(change: dict[str, float], expected: str) -> None:
    f1 = dict.fromkeys(STRATEGIES, 0.8) | {"last": 0.9, "fine-tuned": 0.7, "from scratch": 0.4} | change
    numbers = {"strategy": list(f1), "f1": list(f1.values()), "steps": 1000, "labelled": 10}
    assert judge_seed(feature_layers, numbers) == expected
