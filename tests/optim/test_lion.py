"""Lion moves every coordinate by exactly η, and keeps one buffer."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from descend.optim.lion import Lion
from tests.close import close


@pytest.mark.system("lion")
@pytest.mark.system("lion", "sign")
@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5), st.integers(0, 31))
def test_every_coordinate_moves_by_the_rate(sizes: list[float], signs: int) -> None:
    g = torch.tensor([v * (1 if signs >> k & 1 else -1) for k, v in enumerate(sizes)], dtype=torch.float64)
    p = nn.Parameter(torch.zeros_like(g))
    p.grad = g
    optimizer = Lion([p], lr=0.01)
    optimizer.step()
    close(p, -0.01 * g.sign())
    assert [k for k, v in optimizer.state[p].items() if torch.is_tensor(v)] == ["m"]


@pytest.mark.system("lion")
@pytest.mark.system("lion", "decay")
def test_decay_without_gradient_shrinks() -> None:
    p = nn.Parameter(torch.ones(3, dtype=torch.float64))
    p.grad = torch.zeros_like(p)
    Lion([p], lr=0.1, weight_decay=0.5).step()
    close(p, torch.full((3,), 0.95, dtype=torch.float64))
