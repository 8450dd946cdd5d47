from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.engine.ema import Ema, weight
from tests.close import close


def test_the_average_is_that_of_the_equation_and_the_swap_is_undone() -> None:
    layer = nn.Linear(2, 1, bias=False)
    first = layer.weight.detach().clone()
    ema = Ema(layer, 0.75)
    with torch.no_grad():
        layer.weight.add_(4.0)
    ema.update(100)
    with ema.swap_in():
        close(layer.weight.detach(), first + 1.0)
    close(layer.weight.detach(), first + 4.0)


def shares(steps: int, beta: float) -> Tensor:
    """How much of the average each step's weights are, the initial ones first."""
    found = torch.zeros(steps + 1, dtype=torch.float64)
    found[0] = 1
    for t in range(1, steps + 1):
        w = weight(t, beta)
        found *= 1 - w
        found[t] += w
    return found


def test_the_initial_weights_have_no_share_and_a_short_run_averages_its_end() -> None:
    """With the usual form 55% of the average after 59 steps at β = 0.99 are the initial weights."""
    close(shares(59, 0.0)[-1], torch.tensor(1.0, dtype=torch.float64))
    found = shares(59, 0.99)
    assert found[0] == 0
    close(found.sum(), torch.tensor(1.0, dtype=torch.float64))
    assert found[:30].sum() < 0.01
    k, t = 20, 59  # the share of the first k of t steps, as the docstring has it
    expected = torch.tensor([(k + j) / (t + j) for j in range(9)], dtype=torch.float64).prod()
    close(found[: k + 1].sum(), expected)


def test_a_long_run_has_the_usual_average() -> None:
    beta, start = 0.9, round(9 / 0.1 - 8)
    assert weight(start, beta) == pytest.approx(0.1)
    assert all(weight(t, beta) == pytest.approx(1 - beta) for t in range(start, start + 50))
    assert weight(start - 2, beta) > 0.101


def test_running_statistics_are_averaged_and_other_buffers_are_not() -> None:
    """A batch norm whose inputs keep moving: the averaged one lags behind like the weights."""
    norm = nn.BatchNorm1d(1, momentum=1.0)
    norm.register_buffer("mask", torch.tensor([float("-inf")]))
    ema = Ema(norm, 0.5)
    for t, value in ((20, 2.0), (21, 4.0)):
        norm(torch.tensor([[value - 1], [value + 1]]))
        ema.update(t)
    with ema.swap_in():
        close(norm.running_mean, torch.tensor([0.5 * (0.5 * 0 + 0.5 * 2) + 0.5 * 4]))
        assert torch.isneginf(norm.mask).all()
    close(norm.running_mean, torch.tensor([4.0]))
