"""Hessian matrix, its diagonal, and its product with a vector.

    H_ij = ∂²E/∂θ_i ∂θ_j = H_ji         on the diagonal: own curvature; off it: how two parameters interact
    H v  = d/dε ∇E(θ + ε v) at ε = 0    forward over reverse mode: the price of a few gradients, H is not built
    H e_j = column j                    so n products make the matrix

Erratum: DLN says that an elliptical surface has non-zero off-diagonal elements. They are zero when the ellipse lies
along the axes, and steepest descent misses its minimum all the same.

Systems: hessian-and-hvp
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import grad, jvp, vmap

Scalar = Callable[[Tensor], Tensor]


def hvp(f: Scalar, x: Tensor, v: Tensor) -> Tensor:
    """H v, shaped as x."""
    return jvp(grad(f), (x,), (v,))[1]


def hessian(f: Scalar, x: Tensor) -> Tensor:
    """H (n, n) of f at x with n numbers in all, one product for each column."""
    units = torch.eye(x.numel(), dtype=x.dtype, device=x.device)
    columns: Tensor = vmap(lambda e: hvp(f, x, e.view_as(x)).flatten())(units)
    return columns.T


def diagonal(f: Scalar, x: Tensor) -> Tensor:
    """The own curvatures e_jᵀ H e_j, shaped as x; H is not kept."""
    units = torch.eye(x.numel(), dtype=x.dtype, device=x.device)
    found: Tensor = vmap(lambda e: (e * hvp(f, x, e.view_as(x)).flatten()).sum())(units)
    return found.view_as(x)


def condition_number(h: Tensor) -> Tensor:
    """Largest over smallest eigenvalue of a positive definite H: how elongated the ellipse E = const is."""
    eigenvalues = torch.linalg.eigvalsh(h)
    return eigenvalues[-1] / eigenvalues[0]
