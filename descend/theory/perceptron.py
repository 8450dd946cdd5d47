"""Geometry of a linear classifier, and how many mistakes the perceptron can make.

    signed distance     d(x, H) = (w·x + b) / ‖w‖             H = {x: w·x + b = 0}, positive where w points
    radius, margin      R = max_i ‖x_i‖        γ = min_i y_i (w·x_i + b) / ‖w‖        y in {−1, +1}
    separable           some (w, b) has y_i (w·x_i + b) ≥ 1 for all i        (a linear program: feasible or not)
    without a bias      M ≤ (R / γ)²
    with a learned bias M ≤ (R̃ / γ̃)²       x̃ = (x, 1),  w̃ = (w, b):
                        R̃² = max ‖x_i‖² + 1        γ̃ = min_i y_i (w·x_i + b) / √(‖w‖² + b²)

The proof follows two quantities along a run: w_t·w* grows by at least γ‖w*‖ with every mistake, and ‖w_t‖² by at most
R²; so M γ ≤ √M R. Erratum: MF 2.4.2 states the bound with R and γ of the data while the bias is learned too. This is
false: x = 0.1 (+1), 0.05 (−1) takes 405 updates where it allows 16. With a bias the vectors must be augmented (1625).

Systems: hyperplane-distance-and-margin, perceptron-convergence
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor


def signed_distance(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """(w·x + b) / ‖w‖ of points (.., d): the sign is the side, the size the Euclidean distance."""
    norm = w.norm()
    if norm == 0:
        raise ValueError("w = 0 has no hyperplane; give a normal with a length")
    return (x @ w + b) / norm


def radius(x: Tensor) -> Tensor:
    """R = max_i ‖x_i‖ of points (n, d)."""
    return x.norm(dim=-1).max()


def margin(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """γ = min_i y_i d(x_i, H); above 0 exactly where (w, b) separates the labels y in {−1, +1}."""
    return (y * signed_distance(x, w, b)).min()


def augment(x: Tensor) -> Tensor:
    """x̃ = (x, 1): (n, d) -> (n, d + 1)."""
    return torch.cat([x, x.new_ones(*x.shape[:-1], 1)], dim=-1)


def bound_through_origin(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """(R/γ)²: the most mistakes of a perceptron without a bias, given any w that separates."""
    gamma = margin(x, y, w, w.new_zeros(()))
    if gamma <= 0:
        raise ValueError(f"w does not separate the data: the smallest margin is {float(gamma):.4g}; give one that does")
    return (radius(x) / gamma) ** 2


def bound(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """(R̃/γ̃)²: the most mistakes of a perceptron that learns its bias, given any (w, b) that separates."""
    return bound_through_origin(augment(x), y, torch.cat([w, b.reshape(1)]))


def proof_quantities(path: Tensor, w_star: Tensor) -> tuple[Tensor, Tensor]:
    """w_t·w* and ‖w_t‖² along a run: weights (updates + 1, d) -> two of (updates + 1)."""
    return path @ w_star, path.square().sum(dim=-1)


def separator(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor] | None:
    """Some (w, b) with y_i (w·x_i + b) ≥ 1 for all i, by linear programming; None if there is none."""
    from scipy.optimize import linprog  # here, since it takes long to import

    rows = -(y[:, None] * augment(x)).double().numpy()
    d = x.shape[1]
    found = linprog([0.0] * (d + 1), A_ub=rows, b_ub=[-1.0] * len(rows), bounds=[(None, None)] * (d + 1))
    if found.status == 2:
        return None
    if found.status != 0:
        raise ArithmeticError(f"the linear program was not solved: {found.message}; scale the features first")
    w = torch.from_numpy(found.x)
    return w[:d].to(x.dtype), w[d].to(x.dtype)


def separable(x: Tensor, y: Tensor) -> bool:
    """Is there a hyperplane with all of class +1 on one side and all of −1 on the other?"""
    return separator(x, y) is not None


def fewest_errors(x: Tensor, y: Tensor) -> int:
    """The errors of the best linear classifier: the fewest points without which the rest is separable.

    It tries all subsets, so it is for a handful of points (XOR: 1 of 4).
    """
    n = len(y)
    for errors in range(n):
        for left_out in combinations(range(n), errors):
            keep = [i for i in range(n) if i not in left_out]
            if separable(x[keep], y[keep]):
                return errors
    return n
