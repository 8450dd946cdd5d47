"""Linear regression, the linear (sign) classifier and logistic regression, each with a fit of its own.

    regression          ȳ = w·x + b        C = Σ_i (y_i − ȳ_i)²        (DLN: no ½, no mean)
      closed form       (X̃ᵀX̃) θ = X̃ᵀ y        X̃ = (X, 1),  θ = (w, b)
      gradient descent  θ ← θ − η 2 X̃ᵀ(X̃ θ − y)        converges for η < 1 / λ_max(X̃ᵀX̃)
    sign classifier     ȳ = sign(w·x + b), y in {−1, +1}; fitted by least squares on y. z = 0 is called +1
    logistic            ȳ = σ(w·x + b),  C = −Σ_i [y_i log ȳ_i + (1 − y_i) log(1 − ȳ_i)] + (λ/2) ‖w‖²
      gradient          ∂C/∂w = Σ_i (ȳ_i − y_i) x_i + λ w
      Newton            θ ← θ − H⁻¹ g        H = X̃ᵀ diag(ȳ(1 − ȳ)) X̃ + λ I_w

The closed form is solved by QR, not by forming XᵀX, which would square its condition number. The bias is not
penalized. Without λ, classes that a line separates have no finite optimum; that is refused.

Systems: linear-model, logistic-regression
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.theory.perceptron import augment

TOLERANCE = 1e-10  # of the step of Newton's method, relative to the weights
TOO_SURE = 1e-9  # ȳ(1 − ȳ) of every example below this: the classes are separated and the weights run away


@dataclass(frozen=True)
class Linear:
    """w (d) and b."""

    w: Tensor
    b: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """w·x + b of points (n, d)."""
        return x @ self.w + self.b

    def sign(self, x: Tensor) -> Tensor:
        """+1 where w·x + b ≥ 0, else −1: the linear classifier."""
        return torch.where(self(x) >= 0, 1, -1)

    def probability(self, x: Tensor) -> Tensor:
        """σ(w·x + b): of a logistic model, the probability of class 1."""
        return self(x).sigmoid()


def least_squares(x: Tensor, y: Tensor) -> Linear:
    """The closed form; of several optima (more weights than examples) the one with the smallest weights."""
    theta = torch.linalg.lstsq(augment(x), y[:, None], driver="gelsd").solution[:, 0]
    return Linear(theta[:-1], theta[-1])


def largest_rate(x: Tensor) -> float:
    """1 / λ_max(X̃ᵀX̃): gradient descent on the squared norm converges for any smaller rate."""
    return float(1 / torch.linalg.matrix_norm(augment(x), ord=2) ** 2)


def gradient_descent(x: Tensor, y: Tensor, rate: float = 0.0, steps: int = 1000) -> Linear:
    """Steps down the gradient 2 X̃ᵀ(X̃θ − y), from θ = 0; rate 0 takes half of the largest."""
    rows, rate = augment(x), rate or largest_rate(x) / 2
    theta = rows.new_zeros(rows.shape[1])
    for _ in range(steps):
        theta = theta - rate * 2 * rows.T @ (rows @ theta - y)
    if not theta.isfinite().all():
        raise Mistake(f"rate {rate:g}: gradient descent diverged; use less than {largest_rate(x):.3g}")
    return Linear(theta[:-1], theta[-1])


def logistic_gradient(x: Tensor, y: Tensor, model: Linear) -> Tensor:
    """Σ_i (ȳ_i − y_i) x̃_i: the gradient in (w, b) of the summed cross-entropy, y in {0, 1}."""
    return augment(x).T @ (model.probability(x) - y)


def logistic_regression(x: Tensor, y: Tensor, ridge: float = 0.0, steps: int = 100) -> Linear:
    """Newton's method from θ = 0; `ridge` is λ."""
    if set(y.tolist()) != {0, 1}:
        raise Mistake(f"labels {sorted(set(y.tolist()))[:4]}: logistic regression needs both classes, as 0 and 1")
    rows = augment(x)
    penalty = torch.cat([rows.new_full((x.shape[1],), ridge), rows.new_zeros(1)])
    theta = rows.new_zeros(rows.shape[1])
    for _ in range(steps):
        model = Linear(theta[:-1], theta[-1])
        p = model.probability(x)
        if not ridge and (p * (1 - p)).max() < TOO_SURE:
            raise Mistake("a line separates the classes, so the best weights are infinite; give ridge > 0, e.g. 1e-3")
        gradient = logistic_gradient(x, y, model) + penalty * theta
        hessian = rows.T @ ((p * (1 - p))[:, None] * rows) + penalty.diag()
        change = torch.linalg.lstsq(hessian, gradient[:, None], driver="gelsd").solution[:, 0]
        theta = theta - change
        if change.norm() <= TOLERANCE * (1 + theta.norm()):
            break
    return Linear(theta[:-1], theta[-1])
