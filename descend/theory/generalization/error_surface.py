"""The error surface of a linear neuron: a bowl with elliptical contours, and where its slope points.

    E(w) = (1/2n) Σ (w·x_i − y_i)² = E* + ½ (w − w*)ᵀ H (w − w*),   H = XᵀX / n
    vertical cuts parabolas, horizontal cuts E = const ellipses with half axes √(2 (E − E*) / λ_j)
    angle between −∇E = −H (w − w*) and the way to the minimum −(w − w*):  0 only on an axis or for a circle
    the worst angle over all directions:   sin = (κ − 1)/(κ + 1),   κ = λ_max / λ_min

The best gradient descent gains the factor (κ − 1)/(κ + 1) a step (`optim.stability.best_descent`): the sine of that
angle. On an elongated ellipse the slope is steep along the short axis and nearly perpendicular to the way to go.

Systems: quadratic-error-surface
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Bowl(NamedTuple):
    """E(w) = least + ½ (w − minimum)ᵀ H (w − minimum)."""

    hessian: Tensor
    minimum: Tensor
    least: Tensor

    def __call__(self, w: Tensor) -> Tensor:
        """E at weights (.., d)."""
        away = w - self.minimum
        return self.least + 0.5 * (away * (away @ self.hessian)).sum(-1)

    def slope(self, w: Tensor) -> Tensor:
        return (w - self.minimum) @ self.hessian


def bowl_of(x: Tensor, y: Tensor) -> Bowl:
    """The half mean squared error of a linear neuron on examples x (n, d), y (n)."""
    h = x.T @ x / len(x)
    w = torch.linalg.solve(h, x.T @ y / len(x))
    return Bowl(h, w, 0.5 * (x @ w - y).square().mean())


def angle(h: Tensor, away: Tensor) -> Tensor:
    """Degrees between steepest descent −H a and the way to the minimum −a, for a = w − w* (.., d)."""
    slope = away @ h
    cosine = (slope * away).sum(-1) / (slope.norm(dim=-1) * away.norm(dim=-1))
    return torch.rad2deg(torch.arccos(cosine.clamp(-1, 1)))


def worst_angle(condition: float) -> float:
    """Degrees: arcsin (κ − 1)/(κ + 1), reached where both axes pull alike."""
    return math.degrees(math.asin((condition - 1) / (condition + 1)))


def contour(bowl: Bowl, level: float, points: int = 100) -> Tensor:
    """Points (points, 2) of the ellipse E = level."""
    values, axes = torch.linalg.eigh(bowl.hessian)
    turn = torch.linspace(0, 2 * math.pi, points, dtype=values.dtype)
    circle = torch.stack([turn.cos(), turn.sin()], -1)
    return bowl.minimum + (circle * (2 * (level - bowl.least) / values).sqrt()) @ axes.T
