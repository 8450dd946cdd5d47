"""Accuracy for rare and frequent tokens apart."""

from __future__ import annotations

import pytest
import torch

from descend.metrics.by_frequency import accuracy_by_frequency


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "frequency")
def test_by_frequency() -> None:
    counts = torch.tensor([1, 9, 10, 100])
    tokens = torch.tensor([0, 1, 2, 3, 3, 3])
    right = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    assert accuracy_by_frequency(right, tokens, counts, [10, 50]) == [(2, 0.5), (1, 1.0), (3, pytest.approx(2 / 3))]
    assert accuracy_by_frequency(right[:1], tokens[:1], counts, [10])[1] == (0, 0.0)
