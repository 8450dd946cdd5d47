"""Kernel machines: a linear model over features that are never written out.

    K(x, z) = Φ(x)·Φ(z)        ȳ(x) = Σ_i α_i K(x, x_i)
    polynomial    K = (x·z + c)^d            Φ = the d-fold tensor power of (x, √c)
    Gaussian      K = exp(−‖x − z‖² / 2σ²)    (the usual radial basis function; DLN lists the two names apart)
    ridge         α = (K + λ I)⁻¹ y
    perceptron    on a mistake y_i ȳ(x_i) ≤ 0:  α_i ← α_i + y_i        (kernel 1 + K learns a bias, too)

A Gram matrix K(x_i, x_j) is positive semi-definite, whatever the points: it is ΦΦᵀ.

Systems: kernel-machine
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake

Kernel = Callable[[Tensor, Tensor], Tensor]
"""Points (n, d) and (m, d) -> K (n, m)."""


def polynomial(degree: int, c: float = 1.0) -> Kernel:
    """(x·z + c)^degree"""
    return lambda x, z: (x @ z.T + c) ** degree


def gaussian(sigma: float) -> Kernel:
    """exp(−‖x − z‖² / 2σ²)"""
    return lambda x, z: torch.exp(-(x[:, None] - z).square().sum(dim=-1) / (2 * sigma**2))


def polynomial_features(x: Tensor, degree: int, c: float = 1.0) -> Tensor:
    """Φ of the polynomial kernel: all products of `degree` entries of (x, √c), (n, (d + 1)^degree)."""
    one = torch.cat([x, x.new_full((len(x), 1), c**0.5)], dim=1)
    phi = one
    for _ in range(degree - 1):
        phi = (phi[:, :, None] * one[:, None, :]).flatten(1)
    return phi


@dataclass(frozen=True)
class KernelMachine:
    """ȳ(x) = Σ_i α_i K(x, x_i)"""

    kernel: Kernel
    points: Tensor
    """x_i (m, d)."""
    alpha: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Values (n) at points (n, d); for classes −1 and +1 the sign is the answer."""
        return self.kernel(x, self.points) @ self.alpha


def ridge(kernel: Kernel, x: Tensor, y: Tensor, penalty: float) -> KernelMachine:
    """α = (K + λ I)⁻¹ y for numbers y, or classes −1 and +1."""
    if penalty <= 0:
        raise Mistake(f"penalty {penalty}: K alone may not be invertible; give a number above 0")
    gram = kernel(x, x) + penalty * torch.eye(len(x), dtype=x.dtype)
    return KernelMachine(kernel, x, torch.cholesky_solve(y[:, None], torch.linalg.cholesky(gram))[:, 0])


def perceptron(kernel: Kernel, x: Tensor, y: Tensor, epochs: int = 100) -> tuple[KernelMachine, bool]:
    """The perceptron rule in the features, y in {−1, +1}; and whether a pass had no mistake."""
    gram, alpha = kernel(x, x), torch.zeros_like(y)
    for _ in range(epochs):
        mistakes = 0
        for i in range(len(x)):
            if y[i] * (gram[i] @ alpha) <= 0:
                alpha[i] += y[i]
                mistakes += 1
        if not mistakes:
            return KernelMachine(kernel, x, alpha), True
    return KernelMachine(kernel, x, alpha), False
