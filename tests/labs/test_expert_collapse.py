"""Expert collapse: the claim on a small budget, domains with their own experts, a verdict that can fall otherwise."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import expert_collapse
from descend.labs._evidence import judge_seed
from descend.labs.expert_collapse import ACTIVE, figure, measure, train_layer

verdict = partial(judge_seed, expert_collapse)

SLUG = "load-balancing-loss"


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=1.0)


@pytest.mark.system(SLUG, "collapse")
@pytest.mark.system(SLUG)
def test_the_loss_evens_the_use_and_costs_no_accuracy(numbers: dict[str, Any]) -> None:
    """MF-B.132."""
    assert verdict(numbers) == "supported"
    assert all(a > b for a, b in zip(numbers["entropy_with"], numbers["entropy_without"], strict=True))
    assert min(numbers["entropy_with"]) > 0.95
    assert sum(numbers["error_with"]) < 1.1 * sum(numbers["error_without"])
    for row in numbers["domains"]["with"]:
        assert sum(row) == pytest.approx(ACTIVE)
        assert sum(sorted(row)[-ACTIVE:]) > 0.7 * ACTIVE  # a domain has its own two experts


@pytest.mark.system(SLUG)
def test_the_same_start_and_the_same_tokens() -> None:
    (_, one), (_, other) = train_layer(0.0, 3), train_layer(0.1, 3)
    assert torch.equal(one.draw(5)[0], other.draw(5)[0])


@pytest.mark.parametrize(
    ("gain", "even", "said"),
    [(0.2, 0.99, "supported"), (0.2, 0.8, "refuted"), (-0.2, 0.99, "refuted"), (0.03, 0.99, "open")],
)
def test_verdict(gain: float, even: float, said: str) -> None:
    assert verdict({"gain": gain, "entropy_with": [even], "errors": {"gain": 0.01}}) == said


def test_figure(numbers: dict[str, Any]) -> None:
    assert len(figure(numbers).axes) == 2
