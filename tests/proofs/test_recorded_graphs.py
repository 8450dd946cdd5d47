"""What trainings on graphs recorded (RESULTS.json): citations with their fixed parts, rings."""

from __future__ import annotations

from statistics import mean

import pytest

from tests.proofs.test_recorded_results import read


@pytest.mark.parametrize(
    ("recipe", "bar"),
    [
        pytest.param("gcn-cora", 0.815, marks=pytest.mark.system("gcn", "cora")),
        pytest.param("gat-cora", 0.825, marks=pytest.mark.system("gat", "cora")),
        pytest.param("sage-cora", 0.80, marks=pytest.mark.system("graphsage", "cora")),
    ],
)
def test_papers_are_told_on_average_over_twenty_seeds(recipe: str, bar: float) -> None:
    values = read(f"{recipe} accuracy")
    assert len(values) == 20
    assert mean(values) >= bar


def test_the_citations_are_what_helps() -> None:
    """Without them each seed is far below the worst with them."""
    alone = read("mlp-cora accuracy")
    assert max(alone) < min(min(read(f"{name}-cora accuracy")) for name in ("gcn", "gat", "sage")) - 0.1


@pytest.mark.system("gin", "rings")
def test_two_rings_are_told_on_every_seed() -> None:
    assert min(read("gin-rings accuracy")) >= 0.95
