"""Penalties on the slope of a critic, which keep it 1-Lipschitz, or flat around the data.

    gradient penalty   λ E (‖∇f(x̂)‖₂ − 1)²         x̂ = u x + (1 − u) G(z),  u ~ U(0, 1): on the line real–generated
    R1                 (γ/2) E ‖∇f(x)‖₂²            at real examples

The gradient is taken with its graph, so that the penalty itself is differentiated (double backward). One u for each
example, and it comes with the batch: the same example has the same x̂ however the batch is split. Both are sums over
examples of a function of each, so a critic must not mix the examples of a batch (no batch norm, as in the paper).
For f(x) = w·x the gradient penalty is λ (‖w‖ − 1)² wherever x̂ lies. λ is a fill-in of the paper's (10), and R1 is
beyond the books (Mescheder et al. 2018), StyleGAN's own.

Systems: wgan-gp
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from descend.ranges import NonNegative

Critic = Callable[[Tensor], Tensor]


class Penalty(Protocol):
    """Added to the critic's loss. `u` (b) has one number of 0..1 for each example."""

    def __call__(self, critic: Critic, real: Tensor, fake: Tensor, u: Tensor) -> Tensor: ...


def between(real: Tensor, fake: Tensor, u: Tensor) -> Tensor:
    """x̂ = u x + (1 − u) G(z), with one u for each example."""
    return torch.lerp(fake, real, u.view(-1, *[1] * (real.dim() - 1)).to(real))


def slopes(critic: Critic, x: Tensor) -> Tensor:
    """‖∇f(x)‖² of each example (b); several scores of one example (patches) are summed. It can be differentiated."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return gradient.flatten(1).square().sum(dim=1)


def gradient_penalty(critic: Critic, real: Tensor, fake: Tensor, u: Tensor) -> Tensor:
    """E (‖∇f(x̂)‖ − 1)². (ε under the root: at ∇f = 0 it has no slope, and it would be NaN.)"""
    squares = slopes(critic, between(real, fake, u))
    return ((squares + torch.finfo(squares.dtype).tiny).sqrt() - 1).square().mean()


def r1_penalty(critic: Critic, real: Tensor) -> Tensor:
    """½ E ‖∇f(x)‖²"""
    return slopes(critic, real).mean() / 2


@dataclass(frozen=True)
class GradientPenalty:
    """λ E (‖∇f(x̂)‖ − 1)²"""

    weight: NonNegative = 10.0

    def __call__(self, critic: Critic, real: Tensor, fake: Tensor, u: Tensor) -> Tensor:
        return self.weight * gradient_penalty(critic, real, fake, u)


@dataclass(frozen=True)
class R1:
    """(γ/2) E ‖∇f(x)‖²"""

    weight: NonNegative = 10.0

    def __call__(self, critic: Critic, real: Tensor, fake: Tensor, u: Tensor) -> Tensor:
        return self.weight * r1_penalty(critic, real)
