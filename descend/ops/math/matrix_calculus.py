"""Gradients of matrix expressions; df/dA has the shape of A and holds the partial derivative by each entry.

    f = aᵀx              ∇f = a
    f = xᵀx              ∇f = 2x
    f = xᵀAx             ∇f = (A + Aᵀ)x          2Ax only when A is symmetric
    f = ‖x‖₂             ∇f = x/‖x‖              not at x = 0
    f = trace(AᵀB)       df/dA = B
    f = ½‖y − Wx‖²       df/dW = (Wx − y)xᵀ

Each expression has its function and, named after it, its gradient.

Systems: matrix-calculus-identities
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.math.vectors import norm


def linear(x: Tensor, a: Tensor) -> Tensor:
    """aᵀx."""
    return a @ x


def linear_gradient(x: Tensor, a: Tensor) -> Tensor:
    """∇(aᵀx) = a, the same at every x."""
    return a.expand_as(x)


def squared_norm(x: Tensor) -> Tensor:
    """xᵀx."""
    return x @ x


def squared_norm_gradient(x: Tensor) -> Tensor:
    """∇(xᵀx) = 2x."""
    return 2 * x


def quadratic(x: Tensor, a: Tensor) -> Tensor:
    """xᵀAx."""
    return x @ a @ x


def quadratic_gradient(x: Tensor, a: Tensor) -> Tensor:
    """∇(xᵀAx) = (A + Aᵀ)x."""
    return twice_symmetric_part(a) @ x


def twice_symmetric_part(a: Tensor) -> Tensor:
    """A + Aᵀ: all that xᵀAx sees of A."""
    return a + a.mT


def norm_gradient(x: Tensor) -> Tensor:
    """∇‖x‖₂ = x/‖x‖: a unit vector, whatever the length."""
    length = norm(x)
    if length == 0:
        raise ValueError("‖x‖ has no gradient at x = 0; use squared_norm there")
    return x / length


def trace_product(a: Tensor, b: Tensor) -> Tensor:
    """trace(AᵀB) = Σ_ij a_ij b_ij."""
    return (a.mT @ b).trace()


def trace_product_gradient(a: Tensor, b: Tensor) -> Tensor:
    """d trace(AᵀB)/dA = B, the same at every A."""
    return b.expand_as(a)


def half_squared_residual(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """½‖y − Wx‖²."""
    return (y - w @ x).square().sum() / 2


def half_squared_residual_gradient(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """d/dW ½‖y − Wx‖² = (Wx − y)xᵀ: the error times the input."""
    return torch.outer(w @ x - y, x)
