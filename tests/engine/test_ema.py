from __future__ import annotations

import torch
from torch import nn

from descend.engine.ema import Ema
from tests.close import close


def test_the_average_is_that_of_the_equation_and_the_swap_is_undone() -> None:
    layer = nn.Linear(2, 1, bias=False)
    first = layer.weight.detach().clone()
    ema = Ema(layer, 0.75)
    with torch.no_grad():
        layer.weight.add_(4.0)
    ema.update()
    with ema.applied():
        close(layer.weight.detach(), first + 1.0)
    close(layer.weight.detach(), first + 4.0)


def test_running_statistics_are_averaged_and_other_buffers_are_not() -> None:
    """A batch norm whose inputs keep moving: the averaged one lags behind like the weights."""
    norm = nn.BatchNorm1d(1, momentum=1.0)
    norm.register_buffer("mask", torch.tensor([float("-inf")]))
    ema = Ema(norm, 0.5)
    for value in (2.0, 4.0):
        norm(torch.tensor([[value - 1], [value + 1]]))
        ema.update()
    with ema.applied():
        close(norm.running_mean, torch.tensor([0.5 * (0.5 * 0 + 0.5 * 2) + 0.5 * 4]))
        assert torch.isneginf(norm.mask).all()
    close(norm.running_mean, torch.tensor([4.0]))
