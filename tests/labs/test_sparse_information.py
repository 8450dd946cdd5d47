"""What a window loses: the answer cannot depend on a value out of reach; through a global token it does."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import sparse_information
from descend.labs._evidence import judge_seed
from descend.labs.sparse_information import (
    CLAIM,
    DEPTH,
    LENGTH,
    RADIUS,
    VALUES,
    Reader,
    depends,
    figure,
    measure,
    texts,
)

verdict = partial(judge_seed, sparse_information)

SLUG = "longformer"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.2)


@pytest.mark.system(SLUG)
def test_a_short_run(numbers: dict[str, Any]) -> None:
    """Ten steps teach nothing yet, but what can be learned at all is known from the start."""
    assert numbers["steps"] == 10
    assert not numbers["window"]["depends"]
    assert numbers["global"]["depends"]
    assert numbers["full"]["depends"]
    assert verdict(numbers) == "open"
    assert "L w" in CLAIM


@pytest.mark.system(SLUG)
def test_within_reach_the_window_sees_it() -> None:
    """The same reader depends on a value that lies L w positions back, and not on one more."""
    torch.manual_seed(0)
    reader = Reader("window")
    tokens = texts(1, torch.Generator().manual_seed(0))[0]
    tokens[tokens < 2 + VALUES] = 2 + VALUES  # noise everywhere
    for back, seen in ((DEPTH * RADIUS, True), (DEPTH * RADIUS + 1, False)):
        text = tokens.clone()
        text[0, LENGTH - 1 - back] = 2
        assert depends(reader, text) is seen


def test_texts_put_the_value_out_of_reach() -> None:
    tokens, values = texts(500, torch.Generator().manual_seed(0))
    places = ((tokens >= 2) & (tokens < 2 + VALUES)).nonzero()
    assert torch.equal(places[:, 0], torch.arange(500))  # one a text
    assert (LENGTH - 1 - places[:, 1]).min() > DEPTH * RADIUS
    assert torch.equal(tokens[places[:, 0], places[:, 1]] - 2, values)
    assert values.unique().tolist() == list(range(VALUES))


@pytest.mark.parametrize(
    ("kind", "change", "expected"),
    [
        ("full", {"accuracy": 1.0}, "supported"),
        ("window", {"depends": True}, "refuted"),
        ("window", {"accuracy": 0.5}, "refuted"),
        ("global", {"depends": False}, "refuted"),
        ("global", {"accuracy": 0.7}, "open"),
    ],
)
def test_verdict_reads_the_numbers(numbers: dict[str, Any], kind: str, change: dict[str, Any], expected: str) -> None:
    doctored = deepcopy(numbers)
    doctored["window"]["accuracy"] = numbers["chance"]
    for name in ("global", "full"):
        doctored[name]["accuracy"] = 0.99
    doctored[kind] |= change
    assert verdict(doctored) == expected


def test_figure(numbers: dict[str, Any]) -> None:
    left, right = figure(numbers).axes
    assert len(left.get_lines()) == 3
    assert [bar.get_height() for bar in right.patches] == [numbers[k]["accuracy"] for k in ("window", "global", "full")]
