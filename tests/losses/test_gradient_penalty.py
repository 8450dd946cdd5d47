"""Penalties on the slope: closed forms, second derivatives, and where they are measured."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.losses.gradient_penalty import R1, GradientPenalty, between, gradient_penalty, r1_penalty, slopes
from tests.close import close


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.system("wgan-gp")
@pytest.mark.system("wgan-gp", "linear")
def test_of_a_linear_critic_it_is_known() -> None:
    """λ (‖w‖ − 1)², wherever x̂ lies; its gradient is 2 λ (‖w‖ − 1) w / ‖w‖."""
    w = draw(5).requires_grad_()
    x, y, u = draw(7, 5, seed=1), draw(7, 5, seed=2), torch.rand(7, dtype=torch.float64)
    found = GradientPenalty(10.0)(lambda z: z @ w, x, y, u)
    close(found, 10 * (w.norm() - 1) ** 2)
    (slope,) = torch.autograd.grad(found, w)
    close(slope, (20 * (w.norm() - 1) * w / w.norm()).detach())
    close(R1(3.0)(lambda z: z @ w, x, y, u), 1.5 * w.square().sum())


@pytest.mark.system("wgan-gp")
@pytest.mark.system("wgan-gp", "second-order")
def test_the_penalty_is_differentiated_through_the_gradient() -> None:
    """Against the explicit second derivative of f(x) = v·tanh(W x), and gradcheck."""
    w, v = draw(4, 3).requires_grad_(), draw(4, seed=3).requires_grad_()
    x, y = draw(6, 3, seed=1), draw(6, 3, seed=2)
    u = torch.rand(6, dtype=torch.float64, generator=torch.Generator().manual_seed(4))

    def penalty(w: Tensor, v: Tensor) -> Tensor:
        return gradient_penalty(lambda z: (z @ w.T).tanh() @ v, x, y, u)

    assert torch.autograd.gradcheck(penalty, (w, v))
    middle = between(x, y, u)
    by_hand = (((1 - (middle @ w.T).tanh().square()) * v) @ w).norm(dim=1)  # ∇f = Wᵀ (v (1 − tanh²))
    close(penalty(w, v), (by_hand - 1).square().mean())
    for ours, theirs in zip(
        torch.autograd.grad(penalty(w, v), (w, v)),
        torch.autograd.grad((by_hand - 1).square().mean(), (w, v)),
        strict=True,
    ):
        close(ours, theirs)


@pytest.mark.system("wgan-gp")
@pytest.mark.system("wgan-gp", "line")
def test_it_is_measured_on_the_line_between_a_real_and_a_generated_example() -> None:
    x, y, u = torch.ones(3, 2, 2), torch.zeros(3, 2, 2), torch.tensor([0.0, 0.25, 1.0])
    assert between(x, y, u)[:, 0, 0].tolist() == [0.0, 0.25, 1.0]  # one u for each example
    seen: list[Tensor] = []

    def critic(z: Tensor) -> Tensor:
        seen.append(z.detach())
        return z.flatten(1).square().sum(1)

    gradient_penalty(critic, x, y, u)
    close(seen[0], between(x, y, u))
    close(slopes(critic, x), torch.full((3,), 16.0))  # ‖2 x‖² of four ones


@pytest.mark.system("wgan-gp", "second-order")
def test_a_flat_critic_has_a_finite_gradient() -> None:
    layer = nn.Linear(3, 1)
    nn.init.zeros_(layer.weight)
    gradient_penalty(layer, torch.randn(4, 3), torch.randn(4, 3), torch.rand(4)).backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.isfinite().all()


def test_patches_are_summed() -> None:
    x = draw(2, 3)
    close(slopes(lambda z: z, x), torch.full((2,), 3.0, dtype=torch.float64))
    close(r1_penalty(lambda z: 2 * z, x), torch.tensor(6.0, dtype=torch.float64))
