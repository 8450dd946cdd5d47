"""Which learning rates converge on a quadratic, in closed form.

    gradient descent   θ_{k+1} = (1 − α c) θ_k        converges for 0 < α < 2/c, in one step at 1/c, alternates at 2/c
    two curvatures     best α = 2 / (λ₁ + λ_n), error factor (κ − 1) / (κ + 1),  κ = λ_n / λ₁
    heavy ball         θ_{k+1} = (1 + β − α c) θ_k − β θ_{k−1};  best α = (2 / (√λ₁ + √λ_n))², √β = (√κ − 1) / (√κ + 1)
    window of K        θ_{k+1} = θ_k − (α c / K) Σ θ_{k−j};  stable for α c < 2 K sin²(π / 2K)

A method is linear on a quadratic, so its worst factor is the spectral radius of the matrix that takes one step. Steps
to a given error go with κ for gradient descent and with √κ for the heavy ball.

Erratum (DLN): gradient descent does not "ensure" convergence; it needs α < 2/c, and then finds a stationary point.
VOM 5.5.1 leaves out that the iterates alternate forever at the limit itself. MF 7.1.2's loss curve is illustrative
only.

Systems: gradient-descent
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def contraction(lr: float, curvature: float) -> float:
    """1 − α c, the factor of one step of gradient descent."""
    return 1 - lr * curvature


def rate_limit(curvature: float) -> float:
    """2 / c: at this rate the iterates alternate, above it they grow."""
    return 2 / curvature


def zone(lr: float, curvature: float) -> str:
    """What gradient descent does: slow, one step, oscillating, alternating or diverging."""
    factor = contraction(lr, curvature)
    if math.isclose(abs(factor), 1.0, rel_tol=1e-12) and lr > 0:
        return "alternating"
    if not abs(factor) < 1:
        return "diverging" if lr else "still"
    return "one step" if abs(factor) < 1e-12 else "slow" if factor > 0 else "oscillating"


def best_descent(low: float, high: float) -> tuple[float, float]:
    """Learning rate and error factor of the best gradient descent for curvatures from low to high."""
    return 2 / (low + high), (high - low) / (high + low)


def best_heavy_ball(low: float, high: float) -> tuple[float, float, float]:
    """Learning rate, momentum and error factor of the best heavy ball for curvatures from low to high."""
    a, b = math.sqrt(low), math.sqrt(high)
    factor = (b - a) / (b + a)
    return (2 / (a + b)) ** 2, factor**2, factor


def heavy_ball_matrix(x: float, momentum: float) -> Tensor:
    """One step of (θ_k, θ_{k−1}) at α c = x."""
    return torch.tensor([[1 + momentum - x, -momentum], [1.0, 0.0]], dtype=torch.float64)


def window_matrix(x: float, window: int) -> Tensor:
    """One step of the last K iterates under gradients averaged over K steps, at α c = x."""
    matrix = torch.diag(torch.ones(window - 1, dtype=torch.float64), -1)
    matrix[0] -= x / window
    matrix[0, 0] += 1
    return matrix


def window_limit(window: int) -> float:
    """The largest stable α c: 2 K sin²(π / 2K)."""
    return 2 * window * math.sin(math.pi / (2 * window)) ** 2


def radius(matrix: Tensor) -> float:
    """The largest absolute eigenvalue: the error's factor per step, in the end."""
    return float(torch.linalg.eigvals(matrix).abs().max())
