"""Time as the teacher: correlations, verdicts, and a measurement in little."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import temporal_embedding
from descend.labs._evidence import judge_seed
from descend.labs.temporal_embedding import by_gap, figure, line_correlation, measure, rank_correlation

verdict = partial(judge_seed, temporal_embedding)


def good() -> dict[str, Any]:
    return {"growth": [1.0, 0.9, 1.0], "line": [0.76, 0.9, 0.96], "near": [0.3, 0.02, 0.2], "far": [1.4, 0.08, 1.7],
            "positive": 0.8, "negative": 0.2, "steps": 200}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"growth": [1.0, 0.9, 0.5]}, "refuted"),
        ({"line": [0.76, 0.9, 0.7]}, "refuted"),
        ({"far": [1.4, 0.08, 0.4]}, "refuted"),
        ({"negative": 0.7}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**good(), **change}) == expected


def test_correlations() -> None:
    assert rank_correlation([1.0, 4.0, 9.0, 16.0]) == pytest.approx(1)
    assert rank_correlation([3.0, 2.0, 1.0]) == pytest.approx(-1)
    assert line_correlation([1.0, 2.0, 3.0]) == pytest.approx(1)
    assert line_correlation([1.0, 3.0, 3.0]) < 0.9
    turn = torch.linspace(0, 1, 5)
    arc = torch.stack([turn.cos(), turn.sin()], dim=1)[None]
    assert by_gap(arc) == pytest.approx([2 * torch.sin(torch.tensor(gap / 8)).item() for gap in range(1, 5)], abs=1e-3)


@pytest.mark.system("siamese-contrastive")
def test_measured_in_little() -> None:
    numbers = measure(seed=0, budget=0.2)
    assert verdict(numbers) == "open"
    assert numbers["growth"][0] > 0.9
    assert len(figure(numbers).axes) == 1
