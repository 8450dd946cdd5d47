"""Risk on the population, risk on the sample, their gap; and what an error is made of.

    R(θ) = E ℓ(f_θ(X), Y)        R_n(θ) = (1/n) Σ ℓ(f_θ(x_i), y_i)        gap = R(θ̂) − R_n(θ̂)

For a fixed θ the gap is 0 on average; for a trained one it is positive, since the sample chose θ̂. Least squares with d
inputs x ~ N(0, Σ), y = w·x + ε, ε ~ N(0, σ²), n > d + 1, in closed form and whatever w and Σ are:

    E R_n = σ² (1 − d/n)         E R = σ² (1 + d/(n − d − 1))         gap = σ² (d/n + d/(n − d − 1))
    at the same inputs, with new noise:       E R = σ² (1 + d/n)      gap = 2 σ² d/n

Bias and variance of predictors f̂ trained on many datasets, at a point x with Y = f*(x) + ε:

    E_D (f̂ − f*)² = (E_D f̂ − f*)² + E_D (f̂ − E_D f̂)²        E (f̂ − Y)² = bias² + variance + noise

DLD writes R̂ as a mean in 3.1 and as a sum in 2.2; here it is the mean.

Systems: population-risk-and-gap, bias-variance
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Risks(NamedTuple):
    """What training shows, and what new examples cost."""

    empirical: float
    population: float

    @property
    def gap(self) -> float:
        return self.population - self.empirical


def least_squares_risks(n: int, d: int, noise: float) -> Risks:
    """Expected squared errors of least squares on n examples with d Gaussian inputs and noise of deviation σ."""
    if n <= d + 1:
        raise ValueError(f"{n} examples for {d} inputs: the expected risk is infinite up to n = d + 1; give more")
    return Risks(noise**2 * (1 - d / n), noise**2 * (1 + d / (n - d - 1)))


def least_squares_risks_in_place(n: int, d: int, noise: float) -> Risks:
    """The same where new answers are asked at the inputs of the sample."""
    if n < d:
        raise ValueError(f"{n} examples for {d} inputs: the sample does not determine the weights; give at least {d}")
    return Risks(noise**2 * (1 - d / n), noise**2 * (1 + d / n))


class Parts(NamedTuple):
    """What the squared error of a predictor is made of, point by point."""

    bias_squared: Tensor
    variance: Tensor
    noise: Tensor

    @property
    def error(self) -> Tensor:
        return self.bias_squared + self.variance + self.noise


def split_error(predictions: Tensor, truth: Tensor, noise: float = 0.0) -> Parts:
    """Predictions (datasets, points) and f* (points): bias², variance over the datasets, and σ²."""
    mean = predictions.mean(0)
    variance = (predictions - mean).square().mean(0)
    return Parts((mean - truth).square(), variance, variance.new_full(variance.shape, noise**2))
