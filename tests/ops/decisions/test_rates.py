from __future__ import annotations

import torch

from descend.ops.decisions.rates import StepSize
from tests.close import close


def test_a_rate_holds_and_then_falls() -> None:
    k = torch.tensor([1, 11, 21, 10_001])
    close(
        StepSize(first=0.5, hold=10, power=1.0)(k), torch.tensor([0.5, 0.25, 0.5 / 3, 0.5 / 1001], dtype=torch.float64)
    )
    close(StepSize(first=0.5, power=0.0)(k), torch.full((4,), 0.5, dtype=torch.float64))
    close(StepSize(first=1.0, hold=1, power=1.0)(k), 1 / k.double())
