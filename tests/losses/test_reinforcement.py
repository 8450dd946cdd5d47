"""The losses of DQN and PPO against the books' recomputed numbers and gradients worked out by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.losses.reinforcement import (
    clipped_surrogate,
    episode_loss,
    policy_gradient_loss,
    ppo_loss,
    surrogate_loss,
    td_loss,
    td_target,
    token_rewards,
    value_loss,
)
from tests.close import close

EPS = 0.2


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.system("dqn")
def test_a_gradient_step_is_the_q_learning_update() -> None:
    """S940-9.2-q-update: Q + α (r + γ max Q' − Q) = 2.17; the loss has the factor 2, so the step is α/2."""
    q = torch.tensor([[2.0, -4.0]], dtype=torch.float64, requires_grad=True)
    next_q = numbers(3.0, 1.0)[None]
    y = td_target(numbers(1.0), next_q, torch.tensor([False]), 0.9)
    td_loss(q, torch.tensor([0]), y).backward()
    assert q.grad is not None
    close(q.detach() - 0.1 / 2 * q.grad, [[2.17, -4.0]])


@pytest.mark.system("dqn")
@pytest.mark.system("dqn", "target")
def test_nothing_follows_a_terminal_state() -> None:
    next_q = numbers(3.0, 5.0)[None].expand(2, 2)
    close(td_target(numbers(1.0, 1.0), next_q, torch.tensor([False, True]), 0.9), numbers(5.5, 1.0))


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "clip")
def test_clipped_surrogate_values() -> None:
    """S940-9.3-ppo-clip: the table (r, A, value)."""
    table = [
        (0.5, 1.0, 0.5),
        (0.5, -1.0, -0.8),
        (0.9, 1.0, 0.9),
        (0.9, -1.0, -0.9),
        (1.0, 1.0, 1.0),
        (1.0, -1.0, -1.0),
        (1.1, 1.0, 1.1),
        (1.1, -1.0, -1.1),
        (1.5, 1.0, 1.2),
        (1.5, -1.0, -1.5),
    ]
    ratio, advantage, value = torch.tensor(table, dtype=torch.float64).unbind(1)
    close(clipped_surrogate(ratio, advantage, EPS), value)


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "clip")
def test_clip_interval() -> None:
    """VOM-13.7.6-clip: [0.8, 1.2] for ε = 0.2, and the surrogate at r = 0.5, 1, 1.5 for A = ±1."""
    ratio = numbers(0.5, 1.0, 1.5)
    close(clipped_surrogate(ratio, torch.ones_like(ratio), EPS), numbers(0.5, 1.0, 1.2))
    close(clipped_surrogate(ratio, -torch.ones_like(ratio), EPS), numbers(-0.8, -1.0, -1.5))


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "zero-gradient")
def test_no_gradient_beyond_the_clip_on_the_improving_side() -> None:
    """r > 1+ε with A > 0 and r < 1−ε with A < 0 are done; on the other side the way back stays open."""
    ratio = numbers(1.3, 0.7, 1.3, 0.7, 1.1).requires_grad_()
    advantage = numbers(2.0, -2.0, -2.0, 2.0, 2.0)
    (grad,) = torch.autograd.grad(clipped_surrogate(ratio, advantage, EPS).sum(), ratio)
    assert grad.tolist() == [0.0, 0.0, -2.0, 2.0, 2.0]


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "policy-gradient")
def test_at_ratio_one_it_is_the_policy_gradient() -> None:
    """∇L = −E[A ∇ log π], for steps (b) and for tokens (b, t)."""
    for shape in ((7,), (3, 5)):
        g = torch.Generator().manual_seed(0)
        logits = torch.randn(*shape, 4, generator=g, dtype=torch.float64, requires_grad=True)
        advantage = torch.randn(shape, generator=g, dtype=torch.float64)
        action = torch.randint(4, (*shape, 1), generator=g)
        log_pi = logits.log_softmax(-1).gather(-1, action).squeeze(-1)
        (ours,) = torch.autograd.grad(ppo_loss(log_pi, log_pi.detach(), advantage, EPS), logits, retain_graph=True)
        (plain,) = torch.autograd.grad(-(advantage * log_pi).mean(), logits)
        close(ours, plain)


def test_gradients_are_those_of_finite_differences() -> None:
    """In float64, away from the clip's corners."""
    g = torch.Generator().manual_seed(0)
    old, advantage = torch.randn(2, 6, generator=g, dtype=torch.float64)
    new = (old + numbers(0.05, -0.05, 0.4, -0.4, 0.1, -0.1)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: ppo_loss(x, old, advantage, EPS), (new,))
    q = torch.randn(5, 3, generator=g, dtype=torch.float64, requires_grad=True)
    y, action = torch.randn(5, generator=g, dtype=torch.float64), torch.tensor([0, 2, 1, 1, 0])
    assert torch.autograd.gradcheck(lambda x: td_loss(x, action, y), (q,))


@pytest.mark.system("ppo", "advantages")
def test_value_loss_is_half_the_mean_square() -> None:
    close(value_loss(numbers(1.0, 2.0), numbers(0.0, 5.0)), torch.tensor((1 + 9) / 4, dtype=torch.float64))


@pytest.mark.system("actor-critic")
def test_the_losses_of_a_policy_gradient_are_their_sums() -> None:
    log_prob, a = numbers(-0.5, -2.0, -1.0), numbers(3.0, -1.0, 2.0)
    close(policy_gradient_loss(log_prob, a), numbers((1.5 - 2.0 + 2.0) / 3)[0])
    weight = torch.tensor([[1.0, 0.5, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    rows = torch.stack([log_prob, log_prob])
    close(episode_loss(rows, weight, torch.stack([a, a])), numbers(((1.5 - 1.0) + 1.5) / 2)[0])


@pytest.mark.system("trpo")
def test_the_surrogate_begins_as_the_policy_gradient_and_is_not_clipped() -> None:
    new, a = numbers(-0.5, -2.0, -1.0).requires_grad_(), numbers(3.0, -1.0, 2.0)
    old = new.detach()
    (ours,) = torch.autograd.grad(surrogate_loss(new, old, a), new)
    close(ours, torch.autograd.grad(policy_gradient_loss(new, a), new)[0])
    close(surrogate_loss(old + 1, old, a), -a.mean() * torch.e)


@pytest.mark.system("ppo", "language-policy")
def test_tokens_pay_for_leaving_the_reference_and_the_last_is_rewarded() -> None:
    """The sum over a text is R − β log (π / π_ref) of the whole text."""
    ratio = torch.tensor([[0.5, -1.0, 2.0, 9.0], [1.0, 9.0, 9.0, 9.0]], dtype=torch.float64)
    written = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]]) > 0
    last = torch.tensor([[0, 0, 1, 0], [1, 0, 0, 0]]) > 0
    found = token_rewards(numbers(10.0, 20.0), ratio, written, last, 0.1)
    close(found, torch.tensor([[-0.05, 0.1, 9.8, 0], [19.9, 0, 0, 0]], dtype=torch.float64))
