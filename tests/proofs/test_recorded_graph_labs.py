"""What the labs on graphs found, on three seeds each."""

from __future__ import annotations

import pytest

from tests.proofs.test_recorded_labs import read_verdict

LABS = [
    pytest.param("over-smoothing", marks=pytest.mark.system("over-smoothing", "rate", "depth")),
    pytest.param("ring-counting", marks=pytest.mark.system("graph-task-labs", "rings")),
    pytest.param("karate-sides", marks=pytest.mark.system("graph-task-labs", "karate")),
    pytest.param("scene-pruning", marks=pytest.mark.system("graph-task-labs", "pruning")),
    pytest.param("link-prediction", marks=pytest.mark.system("graph-task-labs", "links")),
    pytest.param("molecule-regression", marks=pytest.mark.system("graph-task-labs", "regression")),
    pytest.param(
        "wl-and-gin",
        marks=[pytest.mark.system("gin", "separates"), pytest.mark.system("weisfeiler-lehman", "aggregators")],
    ),
]


@pytest.mark.parametrize("lab", LABS)
def test_the_recorded_verdict_supports_the_claim(lab: str) -> None:
    assert read_verdict(lab) == "supported"
