"""Second derivatives without the matrix, and what they say about a direction.

    H v = ∂(gᵀ v)/∂θ                                         one more backward pass
    along d:  slope g = dᵀ∇E,  curvature c = dᵀ H d;  the error falls until the step g / c, by g² / (2 c)
    diag H ≈ mean of z ⊙ H z,  z of random signs
    G v = Jᵀ H_L J v                                         Gauss-Newton: J = ∂z/∂θ of the outputs z, H_L = ∂²L/∂z²

Erratum (DLN): the fall along a direction does not go by the ratio g / c; that is the distance to the minimum. The
fall is half the slope times it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import grad

from descend.optim.flat import flatten, unflatten


def slopes(loss: Tensor, params: Sequence[Tensor]) -> Tensor:
    """The gradient as one vector that can be differentiated again."""
    return flatten(grad(loss, params, create_graph=True, materialize_grads=True))


def hessian_product(gradient: Tensor, params: Sequence[Tensor]) -> Callable[[Tensor], Tensor]:
    """v ↦ H v, for a gradient from `slopes`."""

    def product(v: Tensor) -> Tensor:
        if not gradient.requires_grad:  # a linear loss
            return torch.zeros_like(v)
        return flatten(grad(gradient, params, v, retain_graph=True, materialize_grads=True))

    return product


def hessian(gradient: Tensor, params: Sequence[Tensor]) -> Tensor:
    """All n² second derivatives, for a gradient from `slopes`."""
    if not gradient.requires_grad:
        return gradient.new_zeros(gradient.numel(), gradient.numel())
    eye = torch.eye(gradient.numel(), dtype=gradient.dtype, device=gradient.device)
    rows = grad(gradient, params, eye, retain_graph=True, is_grads_batched=True, materialize_grads=True)
    return torch.cat([row.reshape(gradient.numel(), -1) for row in rows], 1)


def diagonal_estimate(product: Callable[[Tensor], Tensor], like: Tensor, samples: int) -> Tensor:
    """diag H from H z for random signs z (torch's random state); exact from one sample where H is diagonal."""
    total = torch.zeros_like(like)
    for _ in range(samples):
        z = torch.empty_like(like).bernoulli_(0.5).mul_(2).sub_(1)
        total += z * product(z)
    return total / samples


def gauss_newton_product(loss: Tensor, outputs: Tensor, params: Sequence[Tensor]) -> Callable[[Tensor], Tensor]:
    """v ↦ Jᵀ H_L J v, which is positive semidefinite for a loss convex in the outputs."""
    (by_output,) = grad(loss, outputs, create_graph=True)
    forward, backward = jacobian_products(outputs, params)

    def product(v: Tensor) -> Tensor:
        jv = forward(v)
        if not by_output.requires_grad:
            return torch.zeros_like(v)
        (hjv,) = grad(by_output, outputs, jv, retain_graph=True, materialize_grads=True)
        return backward(hjv)

    return product


def jacobian_products(
    outputs: Tensor, params: Sequence[Tensor]
) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """v ↦ J v and u ↦ Jᵀ u. The first differentiates the second, which is linear in u."""
    u = torch.zeros_like(outputs, requires_grad=True)
    pulled = grad(outputs, params, u, create_graph=True, materialize_grads=True)
    used = [i for i, part in enumerate(pulled) if part.requires_grad]

    def forward(v: Tensor) -> Tensor:
        parts = unflatten(v, params)
        (jv,) = grad([pulled[i] for i in used], u, [parts[i] for i in used], retain_graph=True)
        return jv

    def backward(u: Tensor) -> Tensor:
        return flatten(grad(outputs, params, u, retain_graph=True, materialize_grads=True))

    return forward, backward


class Along(NamedTuple):
    """A direction of the loss: its slope and curvature, the best step and the fall that a quadratic promises."""

    slope: Tensor
    curvature: Tensor

    @property
    def step(self) -> Tensor:
        """Distance to the line's minimum, against the slope: g / c."""
        return self.slope / self.curvature

    @property
    def reduction(self) -> Tensor:
        """g² / (2 c)."""
        return self.slope**2 / (2 * self.curvature)


def along(loss: Tensor, params: Sequence[Tensor], direction: Tensor) -> Along:
    """Slope and curvature of the loss in a direction (a vector over all parameters)."""
    g = slopes(loss, params)
    return Along((g @ direction).detach(), direction @ hessian_product(g, params)(direction))
