"""State-space layers: convolution = recurrence, whole = step by step, and linear in the length."""

from __future__ import annotations

import pytest
import torch

from descend.nn.recurrent.state_space import Selective, StateSpace
from tests.close import close


@pytest.mark.system("state-space-layer")
@pytest.mark.system("state-space-layer", "convolution", "layer")
def test_the_layer_is_its_recurrence_and_learns() -> None:
    torch.manual_seed(0)
    net, u = StateSpace(3, 5).double(), torch.randn(2, 30, 3).double()
    close(net(u), net.steps(u))
    later = u.clone()
    later[:, 20] += 1
    close(net(u)[:, :20], net(later)[:, :20], loosen=10)  # causal; the FFT spreads rounding errors
    net = StateSpace(1, 8)
    x = torch.randn(32, 20, 1)
    y = torch.nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]  # say what came one step before
    optimizer = torch.optim.Adam(net.parameters(), 0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.system("mamba")
@pytest.mark.system("mamba", "selective")
def test_reading_at_once_is_reading_step_by_step() -> None:
    torch.manual_seed(0)
    net, u = Selective(6, 12, 4, 4, 2).double(), torch.randn(2, 9, 6).double()
    whole, after = net.read(u)
    y, past = net.read(u[:, :5])
    close(y, whole[:, :5])
    for t in range(5, 9):
        y, past = net.step(u[:, t], past)
        close(y, whole[:, t])
    close(past.h, after.h)
    close(past.inputs, after.inputs)


@pytest.mark.system("mamba")
def test_padding_on_the_left_is_not_read() -> None:
    torch.manual_seed(0)
    net, u = Selective(6, 12, 4, 4, 2).double(), torch.randn(1, 7, 6).double()
    alone, after = net.read(u[:, 3:])
    real = torch.arange(7)[None] >= 3
    padded, state = net.read(u, real)
    close(padded[:, 3:], alone)
    close(state.h, after.h)
    close(state.inputs, after.inputs)


@pytest.mark.system("mamba")
@pytest.mark.system("mamba", "linear")
@pytest.mark.system("state-space-layer")
def test_memory_is_one_state_whatever_the_length() -> None:
    net = Selective(6, 12, 4, 4, 2)
    sizes = {t: sum(part.numel() for part in net.read(torch.randn(1, t, 6))[1]) for t in (5, 50)}
    assert sizes[5] == sizes[50] == 12 * (4 + 3)
