"""Learned positions as a map: pairs of a grid, a test that can tell, and what the verdict follows."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import position_grid
from descend.labs._evidence import judge_seed
from descend.labs.position_grid import ROWS, difference, figure, measure, pairs, share_of_shuffles

verdict = partial(judge_seed, position_grid)


def test_pairs_of_the_grid() -> None:
    """Every place of 4 × 4 shares a row or column with 6 others; there are 24 neighbouring pairs, counted twice."""
    found = pairs()
    assert found["lines"].sum(1).tolist() == [6] * ROWS**2
    assert int(found["near"].sum()) == 48
    assert (found["near"] <= found["lines"]).all()
    assert not found["lines"].diagonal().any()


def test_shuffles_tell_a_map_from_noise() -> None:
    chosen = pairs()["near"]
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(ROWS**2, ROWS**2, generator=random, dtype=torch.float64)
    noise = noise + noise.T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(position_grid, "SHUFFLES", 200)
        assert share_of_shuffles(chosen.double() + 0.1 * noise, chosen, random) < 0.01
        assert share_of_shuffles(-chosen.double(), chosen, random) > 0.9
        assert 0.02 < share_of_shuffles(noise, chosen, random) < 0.98
    assert difference(chosen.double(), chosen) == 1


def good() -> dict[str, Any]:
    return {"pairs": ["near", "lines"], "by_chance": [0.0005, 0.002], "accuracy": 0.95, "steps": 400}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"accuracy": 0.5}, "open"),
        ({"by_chance": [0.0005, 0.05]}, "open"),
        ({"by_chance": [0.3, 0.001]}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**good(), **change}) == expected


def test_numbers_and_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position_grid, "SHUFFLES", 20)
    numbers = measure(seed=0, budget=0.05)
    assert verdict(numbers) == "open"
    assert len(numbers["map"]) == ROWS**2
    assert len(figure(numbers).axes) == ROWS**2
