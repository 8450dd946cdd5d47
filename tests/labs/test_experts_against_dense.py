"""Mixtral against Mistral: equal active sizes, and what the verdict follows."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from descend.labs import experts_against_dense as lab
from descend.labs._evidence import judge_seed
from descend.nn.experts import total_and_active

verdict = partial(judge_seed, lab)


def test_a_token_meets_as_many_numbers_in_both() -> None:
    """The dense model's are never fewer, and at most 1% more."""
    dense, sparse = (total_and_active(lab.build(kind, 100), lab.ACTIVE) for kind in ("Mistral", "Mixtral"))
    assert sparse[0] > 2 * dense[0]
    assert sparse[1] <= dense[1] < 1.01 * sparse[1]


GOOD: dict[str, Any] = {
    "model": ["Mistral", "Mixtral"], "loss": [3.7, 3.6], "total": [67, 150], "active": [67, 66],
    "gain": 0.1, "errors": {"gain": 0.01}, "steps": lab.LEAST,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": lab.LEAST - 1}, "open"),
        ({"gain": -0.1}, "refuted"),
        ({"gain": 0.02}, "open"),
        ({"active": [67, 68]}, "open"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**GOOD, **change}) == expected
    assert len(lab.figure({**GOOD, **change}).axes[0].lines) == 2


def test_it_runs_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "TESTED", 4)
    numbers = lab.measure(0, 0.05)
    assert verdict(numbers) == "open"
    assert numbers["loss"][0] - numbers["loss"][1] == pytest.approx(numbers["gain"])
