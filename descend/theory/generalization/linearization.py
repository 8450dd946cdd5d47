"""A network linearised around its initial weights, and the kernel that then decides its training.

    f_lin(x; θ) = f(x; θ₀) + ∇_θ f(x; θ₀)ᵀ (θ − θ₀)
    K(x, x') = ∇f(x; θ₀) · ∇f(x'; θ₀)                                       symmetric, positive semidefinite

Gradient descent on (1/2n) Σ (f_lin(x_i) − y_i)², steps of rate η, has the outputs in closed form:

    after t steps      f_t(x) = f₀(x) + k(x) K⁻¹ (I − (I − ηK/n)^t) (y − f₀)        k(x) = K(x, X)
    gradient flow      f_t(x) = f₀(x) + k(x) K⁻¹ (I − e^{−tK/n}) (y − f₀)
    in the end         f_∞(x) = f₀(x) + k(x) K⁻¹ (y − f₀)                           kernel regression

MF gives the idea only. A wide network stays near its linearization; the gap shrinks with the width.

Systems: ntk-linearization
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import jacrev, jvp

Network = Callable[[Tensor, Tensor], Tensor]
"""f(theta, x): parameters as one vector (p), inputs (n, d) -> outputs (n)."""


def linearize(f: Network, theta0: Tensor) -> Network:
    """f_lin: affine in θ, without building its Jacobian."""

    def linear(theta: Tensor, x: Tensor) -> Tensor:
        moved = jvp(lambda t: f(t, x), (theta0,), (theta - theta0,))
        return torch.as_tensor(moved[0] + moved[1])

    return linear


def features(f: Network, theta0: Tensor, x: Tensor) -> Tensor:
    """∇_θ f(x_i; θ₀): (n, p)."""
    rows: Tensor = jacrev(lambda t: f(t, x))(theta0)
    return rows


def tangent_kernel(f: Network, theta0: Tensor, x: Tensor, other: Tensor) -> Tensor:
    """K (n, m)."""
    return features(f, theta0, x) @ features(f, theta0, other).T


def kernel_descent(k: Tensor, kernel: Tensor, residual: Tensor, lr: float, steps: float) -> Tensor:
    """f_t − f₀ at points with kernel rows k (m, n), for K (n, n) and y − f₀ (n), after t steps of rate η."""
    values, vectors = torch.linalg.eigh(kernel)
    return k @ (vectors @ (gain(values, 1 - (1 - lr * values / len(kernel)) ** steps) * (vectors.T @ residual)))


def kernel_flow(k: Tensor, kernel: Tensor, residual: Tensor, time: float) -> Tensor:
    """f_t − f₀ under gradient flow."""
    values, vectors = torch.linalg.eigh(kernel)
    gained = gain(values, -torch.expm1(-time * values / len(kernel)))
    return k @ (vectors @ (gained * (vectors.T @ residual)))


def gain(values: Tensor, learnt: Tensor) -> Tensor:
    """What is learnt of each eigendirection over its eigenvalue; nothing where the kernel has none."""
    there = values > values.numel() * torch.finfo(values.dtype).eps * values.max()
    return torch.where(there, learnt / torch.where(there, values, 1.0), 0.0)
