"""Iterate averaging: the mean of the iterates, torch's running mean, and less variance."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from descend.optim.averaging import IterateAveraging
from tests.close import close
from tests.optim.problems import descend, problem


@pytest.mark.system("iterate-averaging")
@pytest.mark.system("iterate-averaging", "wrapper")
@pytest.mark.parametrize(
    "build", [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.Adam(p, 0.05)]
)
def test_the_parameters_are_the_mean_that_torch_keeps_beside_the_iterates(build: object) -> None:
    ours, x, y = problem()
    wrapped = IterateAveraging(build(ours.parameters()))  # type: ignore[operator]
    descend(wrapped, lambda: (ours(x) - y).square().mean(), 10)
    theirs, _, _ = problem()
    inner, mean = build(theirs.parameters()), AveragedModel(theirs)  # type: ignore[operator]
    for _ in range(10):
        descend(inner, lambda: (theirs(x) - y).square().mean(), 1)
        mean.update_parameters(theirs)
    for a, b, c in zip(ours.parameters(), mean.module.parameters(), theirs.parameters(), strict=True):
        close(a, b)
        close(wrapped.state[a]["iterate"], c)


@pytest.mark.system("iterate-averaging")
def test_a_schedule_reaches_the_inner_optimizer_also_after_loading() -> None:
    p = nn.Parameter(torch.ones(2))
    wrapped = IterateAveraging(torch.optim.SGD([p], 0.1))
    wrapped.load_state_dict(wrapped.state_dict())
    wrapped.param_groups[0]["lr"] = 0.0
    descend(wrapped, lambda: p.square().sum(), 3)
    assert torch.equal(p, torch.ones(2))


@pytest.mark.system("iterate-averaging")
@pytest.mark.system("iterate-averaging", "variance")
def test_the_average_varies_less_than_the_iterate() -> None:
    """DLN-A.91: noisy gradients of ½θ², 200 problems at once."""
    torch.manual_seed(0)
    p = nn.Parameter(torch.zeros(200))
    wrapped = IterateAveraging(torch.optim.SGD([p], 0.3), start=20)
    descend(wrapped, lambda: (0.5 * p.square() + torch.randn(200) * p).sum(), 200)
    assert p.var() < 0.2 * wrapped.state[p]["iterate"].var()
