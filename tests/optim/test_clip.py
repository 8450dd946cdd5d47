"""Clipping without ε, by norm and by value; the norm before is returned."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from descend.optim.clip import clip_norm, clip_value, gradients
from tests.close import close


@pytest.mark.system("gradient-clipping")
@pytest.mark.system("gradient-clipping", "norm", "value")
def test_clipping() -> None:
    p, q = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    p.grad, q.grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    close(clip_norm([p, q], 1.0), torch.tensor(5.0))
    close(p.grad, torch.tensor([0.6, 0.0]))
    close(q.grad, torch.tensor([0.8]))
    close(clip_norm([p, q], 2.0), torch.tensor(1.0))  # short gradients stay
    close(q.grad, torch.tensor([0.8]))
    close(clip_value([p, q], 0.7), torch.tensor(1.0))
    close(torch.cat([p.grad, q.grad]), torch.tensor([0.6, 0.0, 0.7]))


def test_a_zero_gradient_is_left_alone() -> None:
    p = nn.Parameter(torch.ones(2))
    p.grad = torch.zeros(2)
    clip_norm([p], 1.0)
    assert (p.grad == 0).all()


@pytest.mark.system("gradient-clipping")
@pytest.mark.system("gradient-clipping", "norm")
@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6).map(lambda v: round(v, 3)), min_size=1, max_size=6), st.floats(1e-3, 1e3))
def test_the_norm_after_is_the_smaller_one_and_the_direction_stays(values: list[float], tau: float) -> None:
    p, g = nn.Parameter(torch.zeros(len(values), dtype=torch.float64)), torch.tensor(values, dtype=torch.float64)
    p.grad = g.clone()
    before = clip_norm([p], tau)
    close(before, g.norm()) if g.any() else None
    assert abs(p.grad.norm().item() - min(g.norm().item(), tau)) <= 1e-9 * max(tau, 1.0)
    assert (p.grad * g >= 0).all()
    if g.norm() <= tau:
        assert torch.equal(p.grad, g)


@pytest.mark.system("gradient-clipping")
@pytest.mark.system("gradient-clipping", "torch")
def test_torch_differs_by_its_epsilon_only() -> None:
    ours, theirs = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))
    ours.grad, theirs.grad = torch.tensor([3.0, 4.0, 12.0]), torch.tensor([3.0, 4.0, 12.0])
    close(clip_norm([ours], 2.0), nn.utils.clip_grad_norm_([theirs], 2.0))
    close(ours.grad, theirs.grad)


@pytest.mark.system("vanishing-exploding-in-time", "clipping")
@pytest.mark.system("gradient-clipping")
@pytest.mark.system("gradient-clipping", "value", "exploding")
def test_an_exploding_recurrence_trains_without_nan() -> None:
    """DLN-B.15, MF-A.54: h ← W h over 40 steps, with a W that grows 1.3 times a step; without clipping it is lost."""
    for clip, learns in ((clip_norm, True), (clip_value, True), (lambda params, tau: None, False)):
        w = nn.Parameter(torch.eye(3) * 1.3)
        optimizer = torch.optim.SGD([w], 0.005)
        for _ in range(25):
            h = torch.ones(3)
            for _ in range(40):
                h = w @ h
            optimizer.zero_grad()
            loss = (h - 1).square().mean()
            loss.backward()
            clip([w], 1.0)
            assert not learns or w.grad.abs().max() <= 1.0
            optimizer.step()
        assert bool(loss.isfinite() and loss < 2e8) is learns, loss.item()


def test_nothing_to_clip() -> None:
    assert clip_norm([nn.Parameter(torch.ones(2))], 1.0) == 0
    assert clip_value([], 1.0) == 0


@pytest.mark.parametrize("kinds", [(torch.float32,) * 3, (torch.float32, torch.float64, torch.float32)])
def test_the_norm_is_torchs_to_the_bit(kinds: tuple[torch.dtype, ...]) -> None:
    """Alike gradients take a shorter way."""
    found = [torch.nn.Parameter(torch.zeros(9, 7, dtype=kind)) for kind in kinds]
    for i, p in enumerate(found):
        p.grad = torch.randn(9, 7, generator=torch.Generator().manual_seed(i)).to(p.dtype)
    grads, norm = gradients([*found, torch.nn.Parameter(torch.zeros(2))])
    assert len(grads) == len(kinds)
    assert torch.equal(norm, torch.nn.utils.get_total_norm(grads))
    assert gradients([torch.nn.Parameter(torch.zeros(2))])[1] == 0
