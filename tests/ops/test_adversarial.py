"""Adversarial examples stay within ε and raise the loss."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from descend.losses.classification import cross_entropy
from descend.ops.adversarial import fgsm, pgd
from tests.close import close

pytestmark = pytest.mark.system("adversarial-augmentation")


def problem() -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    return model, torch.rand(32, 6, dtype=torch.float64), torch.randint(3, (32,))


@pytest.mark.system("adversarial-augmentation", "bounded")
@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.floats(0, 2), st.integers(0, 100))
def test_never_more_than_eps_and_within_the_range(eps: float, seed: int) -> None:
    model, x, y = problem()
    x = torch.rand(32, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    loss = lambda x: cross_entropy(model(x), y)
    for attack in (fgsm, pgd):
        free, kept = attack(loss, x, eps), attack(loss, x, eps, low=0.0, high=1.0)
        for moved in (free, kept):
            assert (moved - x).abs().max() <= eps + 1e-15  # x + ε is rounded
        assert 0 <= kept.min() <= kept.max() <= 1
        close(attack(loss, x, 0.0), x)


@pytest.mark.system("adversarial-augmentation", "bounded")
def test_the_loss_rises() -> None:
    model, x, y = problem()
    loss = lambda x: cross_entropy(model(x), y)
    clean, one, many = (loss(v).mean() for v in (x, fgsm(loss, x, 0.1), pgd(loss, x, 0.1)))
    assert clean < one
    assert one * 0.999 < many
    assert (loss(fgsm(loss, x, 0.01)) >= loss(x)).all()  # every example, for a small ε
    assert loss(fgsm(lambda x: -loss(x), x, 0.1)).mean() < clean


def test_fgsm_is_the_worst_case_of_a_linear_loss() -> None:
    """max over |δ| ≤ ε of wᵀ(x + δ) is wᵀx + ε‖w‖₁: among all corners of the box none is worse."""
    w, x = torch.tensor([1.0, -2.0, 0.5]), torch.zeros(1, 3)
    moved = fgsm(lambda x: x @ w, x, 0.3)
    close(moved @ w, 0.3 * w.abs().sum()[None])
    corners = 0.3 * torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 3)
    close((corners @ w).max(), (moved @ w)[0])


def test_parameters_get_no_gradient_and_no_grad_mode_is_fine() -> None:
    model, x, y = problem()
    with torch.no_grad():
        moved = fgsm(lambda x: cross_entropy(model(x), y), x, 0.1)
    assert all(p.grad is None for p in model.parameters())
    assert not moved.requires_grad
    assert (moved != x).any()
