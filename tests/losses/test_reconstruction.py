"""What an autoencoder minimises, in the books' conventions."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import mse_loss

from descend.errors import Mistake
from descend.losses.reconstruction import activation_penalty, half_squared_error, near_zero, squared_error
from tests.close import close


@pytest.mark.system("autoencoder", "losses")
def test_both_conventions() -> None:
    """DLN: half a sum over examples. S940: a mean, no half. torch's mean also divides by the pixels."""
    x, y = torch.randn(2, 6, 1, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    total = mse_loss(y, x, reduction="sum")
    close(half_squared_error(x, y).sum(), total / 2)
    close(squared_error(x, y).mean(), total / 6)
    close(squared_error(x, y).mean(), 12 * mse_loss(y, x))
    with pytest.raises(Mistake, match="differ in shape"):
        squared_error(x, y[:, 0])


@pytest.mark.system("sparse-autoencoder", "activations")
def test_the_penalty_is_of_activations() -> None:
    a = torch.tensor([[0.5, -2.0, 0.0], [0.001, 0.0, 1.0]], dtype=torch.float64)
    close(activation_penalty(a), torch.tensor([2.5, 1.001], dtype=torch.float64))
    close(near_zero(a), torch.tensor([1 / 3, 2 / 3], dtype=torch.float64))
