"""Gains and Rprop: the printed constants, clipping, zero products, and why mini-batches mislead Rprop."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.optim.gains import LocalGains, PlainRprop, VelocityGains
from tests.close import close


def feed(optimizer: torch.optim.Optimizer, p: nn.Parameter, gradients: list[float]) -> None:
    for g in gradients:
        p.grad = torch.full_like(p, g)
        optimizer.step()


@pytest.mark.system("local-adaptive-gains")
@pytest.mark.system("local-adaptive-gains", "rule")
def test_a_zero_product_counts_as_disagreement() -> None:
    p = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = LocalGains([p])
    feed(optimizer, p, [1.0, 0.0])
    close(optimizer.state[p]["gain"], torch.tensor([0.95], dtype=torch.float64))


@pytest.mark.system("local-adaptive-gains")
@pytest.mark.system("local-adaptive-gains", "clipped")
@pytest.mark.parametrize("clip", [(0.1, 10.0), (0.01, 100.0)])
def test_gains_stay_in_their_range(clip: tuple[float, float]) -> None:
    for pattern, end in (([1.0], clip[1]), ([1.0, -1.0], clip[0])):
        p = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        optimizer = LocalGains([p], add=1.0, multiply=0.5, clip=clip)
        feed(optimizer, p, pattern * (120 // len(pattern)))
        close(optimizer.state[p]["gain"], torch.tensor([end], dtype=torch.float64))


@pytest.mark.system("local-adaptive-gains")
@pytest.mark.system("local-adaptive-gains", "velocity")
def test_with_momentum_the_velocity_is_asked() -> None:
    """A gradient that turns while the velocity still agrees with it keeps its gain growing, unlike the plain form."""
    p, q = (nn.Parameter(torch.zeros(1, dtype=torch.float64)) for _ in range(2))
    plain, moving = LocalGains([p]), VelocityGains([q])
    for optimizer, w in ((plain, p), (moving, q)):
        feed(optimizer, w, [1.0, 1.0, -0.1, 1.0])
    close(plain.state[p]["gain"], torch.tensor([1.05 * 0.95 * 0.95], dtype=torch.float64))
    close(moving.state[q]["gain"], torch.tensor([1.05 * 0.95 + 0.05], dtype=torch.float64))


@pytest.mark.system("rprop")
@pytest.mark.system("rprop", "full-batch")
def test_away_from_sign_changes_it_is_torchs() -> None:
    found = []
    for build in (PlainRprop, torch.optim.Rprop):
        p = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        feed(build([p], lr=0.1), p, [0.5, 2.0, 0.1, 0.0, 3.0])
        found.append(p.detach())
    close(*found)


@pytest.mark.system("rprop")
@pytest.mark.system("rprop", "mini-batches")
def test_mini_batches_whose_gradients_cancel_still_move_it() -> None:
    """DLN-A.94: nine gradients of 0.1 and one of −0.9 have mean 0; SGD stays, both forms of Rprop walk."""
    batches = [0.1] * 9 + [-0.9]
    for build, stays in ((torch.optim.SGD, True), (PlainRprop, False), (torch.optim.Rprop, False)):
        p = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        feed(build([p], lr=0.1), p, batches)
        assert (abs(p.item()) < 1e-12) is stays
        assert stays or p.item() < -1.5
