"""Universal approximation: one hidden layer comes as near to a continuous function as its width allows.

    g(x) = Σ_{j=1}^{N} α_j σ(w_j·x + b_j)          no bias at the output          sup_K |g − f| → 0 as N grows

for every continuous f on a compact K if σ is not a polynomial (MF; S940 asks for bounded and nonconstant, which is
narrower: ReLU is neither). If σ is a polynomial of degree q, so is every g, and no width gets below

    floor_q = min over polynomials p of degree ≤ q of sup |p − f|          found exactly on a grid, as a linear program

The theorem only says that g exists. Here the hidden weights are drawn and the α_j solved for by least squares. A
construction with a rate, in one dimension: ReLUs at N equal steps interpolate f,

    g(x) = f(x₀) + Σ_{k<N} (s_k − s_{k−1}) relu(x − x_k)        sup |g − f| ≤ Lip h / 2,   ≤ max|f''| h² / 8,  h = 1/N

Systems: universal-approximation
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Shallow:
    """g(x) = Σ α_j σ(w_j·x + b_j) for x (.., d): hidden weights (n, d), biases (n), output weights (n)."""

    weight: Tensor
    bias: Tensor
    output: Tensor
    activation: Function

    def __call__(self, x: Tensor) -> Tensor:
        return self.activation(x @ self.weight.T + self.bias) @ self.output


def fit_universal(
    f: Function, x: Tensor, units: int, activation: Function, random: torch.Generator, scale: float = 8.0
) -> Shallow:
    """A hidden layer with random kinks in the cube [0, 1]^d, its output weights by least squares on points x (m, d).

    A unit's direction is random and its bias puts the kink through a random point; `scale` is how steep the units are.
    """
    d = x.shape[-1]
    direction = torch.randn(units, d, generator=random, dtype=x.dtype)
    weight = scale * direction / direction.norm(dim=-1, keepdim=True)
    at = torch.rand(units, d, generator=random, dtype=x.dtype)
    bias = -(weight * at).sum(-1)
    hidden = activation(x @ weight.T + bias)
    output = torch.linalg.lstsq(hidden, f(x)[:, None], rcond=1e-12, driver="gelsd").solution[:, 0]
    return Shallow(weight, bias, output, activation)


def sup_error(g: Function, f: Function, x: Tensor) -> float:
    """max |g − f| over points x (m, d)."""
    return float((g(x) - f(x)).abs().max())


def polynomial_floor(f: Function, x: Tensor, degree: int) -> float:
    """The smallest max |p − f| over points x (m) of all polynomials p of this degree, by linear programming."""
    from scipy.optimize import linprog  # here, since it takes long to import

    y = f(x[:, None]).double()
    powers = torch.linalg.qr(torch.stack([x.double() ** k for k in range(degree + 1)], -1)).Q * len(x) ** 0.5
    ones = torch.ones(len(x), 1, dtype=torch.float64)
    rows = torch.cat([torch.cat([powers, -ones], 1), torch.cat([-powers, -ones], 1)])
    cost = [0.0] * (degree + 1) + [1.0]
    bounds = [(None, None)] * (degree + 1) + [(0, None)]
    found = linprog(cost, A_ub=rows.numpy(), b_ub=torch.cat([y, -y]).numpy(), bounds=bounds)
    if found.status != 0:
        raise ArithmeticError(f"the linear program was not solved: {found.message}; give fewer degrees")
    return float(found.fun)


def interpolate_by_relu(f: Function, segments: int) -> Shallow:
    """The polygon through f at 0, 1/N, …, 1 as N ReLU units and one that is constant: g = f at the knots."""
    knots = torch.linspace(0, 1, segments + 1, dtype=torch.float64)
    values = f(knots[:, None])
    slopes = values.diff() * segments
    jumps = torch.cat([slopes[:1], slopes.diff()])
    weight = torch.cat([torch.zeros(1, dtype=torch.float64), torch.ones(segments, dtype=torch.float64)])
    bias = torch.cat([torch.ones(1, dtype=torch.float64), -knots[:-1]])
    return Shallow(weight[:, None], bias, torch.cat([values[:1], jumps]), torch.relu)


def fit_slope(x: Tensor, y: Tensor) -> float:
    """The slope of log y against log x by least squares: −1 where y falls as 1/x."""
    a, b = x.double().log(), y.double().log()
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / a.square().sum())
