"""There and back: zero for inverse maps, the books' numbers for a wrong one."""

from __future__ import annotations

import pytest
import torch

from descend.losses.cycle import cycle_loss, l1_distance
from tests.close import close

pytestmark = pytest.mark.system("cyclegan")
X, Y = (torch.tensor(v, dtype=torch.float64)[:, None] for v in ([0.0, 1.0, 2.0], [1.0, 3.0, 5.0]))


@pytest.mark.system("cyclegan", "cycle-loss")
def test_inverse_and_wrong_maps() -> None:
    """DLN-CycleGAN-cycle-loss"""
    to_y = lambda x: 2 * x + 1
    assert cycle_loss(X, Y, lambda y: (y - 1) / 2, to_y) == 0
    close(cycle_loss(X, Y, lambda y: y / 2, to_y), torch.tensor(1.5, dtype=torch.float64))


@pytest.mark.system("cyclegan", "reduction")
def test_sum_or_mean_over_pixels() -> None:
    x, y = torch.zeros(2, 3, 4, 4), torch.ones(2, 3, 4, 4)
    assert float(l1_distance(x, y)) == 1.0
    assert float(l1_distance(x, y, "sum")) == 48.0
    away = lambda z: z + 1
    close(cycle_loss(x, y, away, away, "sum"), 48 * cycle_loss(x, y, away, away))
