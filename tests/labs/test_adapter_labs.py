"""Labs of adapters and of retrieval: they run at a small budget, and their effects are those of the numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from descend.labs import lora_rank, retrieved_facts, tuning_methods
from descend.labs._evidence import judge_seed
from descend.labs._new_task import EQUALS, KNOWN, LENGTH, LETTERS, NEW, draw_tasks
from tests.close import close

RANK: dict[str, Any] = {
    "rank": [1, 2, 4, 8, 16],
    "right": [0.5, 0.7, 0.8, 1.0, 1.0],
    "full": 1.0,
    "known": 1.0,
    "unchanged": 1.0,
    "directions": 8.0,
    "random_directions": 19.0,
    "steps": 704,
}
ONE = {"numbers": 1, "right": [0.1, 0.2, 0.9], "loss": 0.3, "milliseconds": 0.1}
METHODS: dict[str, Any] = {
    "steps": 720,
    "known": 1.0,
    "prompt": ONE | {"right": [0.1] * 3},
    "prefix": ONE | {"loss": 2.0},
    "LoRA": ONE,
    "adapters": ONE | {"milliseconds": 0.3},
    "full": ONE | {"right": [0.1, 0.5, 1.0]},
}
FACTS: dict[str, Any] = {
    "steps": 900,
    "before": {"right": 1.0, "old": 1.0, "recall": 1.0},
    "after": {"right": 1.0, "old": 0.0, "recall": 1.0},
    "without": 0.05,
}


def test_the_tasks_are_what_their_equation_says() -> None:
    tasks = draw_tasks(3)
    s = tasks.draw(torch.arange(KNOWN + 1), 40, torch.Generator().manual_seed(0))
    for row in s.tolist():
        t, x, y = row[0] - LETTERS, row[1 : LENGTH + 1], row[LENGTH + 2 :]
        assert row[LENGTH + 1] == EQUALS
        assert y == [int(tasks.letters[t][x[int(place)]]) for place in tasks.orders[t]]
    assert sorted(tasks.letters[NEW].tolist()) == list(range(LETTERS))


@pytest.mark.parametrize("lab", [lora_rank, tuning_methods, retrieved_facts])
def test_it_measures_and_says_what_it_needs(lab: Any) -> None:
    numbers = lab.measure(seed=0, budget=0.05)
    assert lab.needs(numbers) > 1
    assert judge_seed(lab, numbers) == "open"
    assert {prediction.effect for prediction in lab.PREDICTIONS} <= lab.effects(numbers).keys()
    assert lab.figure(numbers).axes


@pytest.mark.parametrize(
    ("lab", "numbers", "expected"),
    [
        (lora_rank, RANK, "supported"),
        (lora_rank, RANK | {"right": [0.5, 0.7, 0.8, 0.9, 0.9]}, "refuted"),
        (lora_rank, RANK | {"directions": 18.0}, "refuted"),
        (lora_rank, RANK | {"unchanged": 0.0}, "refuted"),
        (lora_rank, RANK | {"full": 0.6}, "open"),
        (tuning_methods, METHODS, "supported"),
        (tuning_methods, METHODS | {"prefix": ONE}, "refuted"),
        (tuning_methods, METHODS | {"adapters": ONE}, "refuted"),
        (retrieved_facts, FACTS, "supported"),
        (retrieved_facts, FACTS | {"without": 0.5}, "refuted"),
    ],
)
def test_verdicts(lab: Any, numbers: dict[str, Any], expected: str) -> None:
    assert judge_seed(lab, numbers) == expected


def test_shares_of_energy_are_averages_over_the_matrices() -> None:
    one, two = torch.diag(torch.tensor([3.0, 4.0])), torch.diag(torch.tensor([1.0, 0.0]))
    close(torch.tensor(lora_rank.average_shares([one, two])), torch.tensor([(16 / 25 + 1) / 2, 1.0]))
