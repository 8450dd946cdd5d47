"""Derivatives as numbers: quotients, gradients, the chain rule link by link, directions, the Jacobian.

    derivative          f'(x) = lim_{h→0} (f(x+h) − f(x)) / h           tangent slope, the limit of secant slopes
    central             (f(x+h) − f(x−h)) / 2h = f'(x) + O(h²)          best h ≈ ε^{1/3}: smaller h only adds rounding
    rules               (fg)' = f'g + fg'        (f/g)' = (f'g − fg') / g²
    chain               y = f_n(…f_1(x)):   dy/dx = Π_i f_i'(u_{i−1}), each link amplifies the change by its own factor
    gradient            ∇f = (∂f/∂x_1, …, ∂f/∂x_n)                      a column vector in input space
    directional         D_u f = ∇f·u = ‖∇f‖ cos θ for ‖u‖ = 1           largest at u = ∇f/‖∇f‖, descent along −∇f
    Jacobian            J_ji = ∂y_j/∂x_i, (m, n): row j = gradient of y_j
                        y(x + Δx) − y(x) = J Δx + O(‖Δx‖²)

VOM 2.5.4's 8, 6 and 10 are slopes of x² + y² at (3, 4). A whole unit step gains 9, 7 and 11 (`gain`), because
f(p + u) − f(p) = ∇f·u + ‖u‖² there. VOM 2.3 stops at dy/dw = v·dσ/dw; the whole chain is v σ'(wx+b) x.

Derivatives here are torch's autograd, and finite differences to check them; `ops.symbolic` has formulas.

Systems: numerical-and-symbolic-differentiation, scalar-chain-rule, gradient-and-directional-derivative,
    jacobian-linear-approximation
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from descend.ops.math.vectors import dot, norm, unit

Function = Callable[[Tensor], Tensor]


# Finite differences


def difference_quotients(f: Function, x: Tensor, steps: Tensor) -> Tensor:
    """(f(x+h) − f(x)) / h for each h of `steps` (n): the secant slopes, (n)."""
    return (f(x + steps) - f(x)) / steps


def best_step(x: Tensor) -> float:
    """h = ε^{1/3} max(1, |x|): where the error h² of the formula and the error ε/h of rounding are alike."""
    return float(torch.finfo(x.dtype).eps ** (1 / 3) * max(1.0, x.abs().max().item()))


def numerical_gradient(f: Function, x: Tensor) -> Tensor:
    """∇f by central differences, one pair of evaluations for each number of x; f gives a scalar, x has any shape."""
    h = best_step(x)
    basis = torch.eye(x.numel(), dtype=x.dtype).view(-1, *x.shape)
    slopes = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in basis]
    return torch.stack(slopes).detach().view(x.shape)


def gradient_error(f: Function, x: Tensor, claimed: Tensor) -> float:
    """The gradient checker: ‖claimed − numerical‖ / (‖claimed‖ + ‖numerical‖); in float64 about 1e-10 when right."""
    measured = numerical_gradient(f, x).flatten()
    size = norm(measured) + norm(claimed.flatten())
    return (norm(measured - claimed.flatten()) / size).item() if size > 0 else 0.0


# Rules for one variable


def product_rule(f: Tensor, df: Tensor, g: Tensor, dg: Tensor) -> Tensor:
    """(fg)' = f'g + fg', from the values and slopes of f and g."""
    return df * g + f * dg


def quotient_rule(f: Tensor, df: Tensor, g: Tensor, dg: Tensor) -> Tensor:
    """(f/g)' = (f'g − fg') / g²."""
    return (df * g - f * dg) / g**2


# The chain rule


def walk(links: Sequence[Function], x: Tensor) -> list[Tensor]:
    """x, u_1 = f_1(x), u_2 = f_2(u_1), …, y: the inner function first."""
    values = [x]
    for link in links:
        values.append(link(values[-1]))
    return values


def link_factors(links: Sequence[Function], x: Tensor) -> Tensor:
    """f_i'(u_{i−1}) of each link, at the values on the way from x; their product is dy/dx."""
    values = walk(links, x)
    return torch.stack([gradient(link, u) for link, u in zip(links, values, strict=False)])


def step_factors(links: Sequence[Function], x: Tensor, dx: Tensor) -> Tensor:
    """Δu_i / Δu_{i−1} of each link when x moves by dx; their product is Δy/Δx exactly."""
    moves = torch.stack(walk(links, x + dx)) - torch.stack(walk(links, x))
    return moves[1:] / moves[:-1]


def chain_rule(links: Sequence[Function], x: Tensor) -> tuple[Tensor, Tensor]:
    """dy/dx, and the factor of each link."""
    factors = link_factors(links, x)
    return factors.prod(), factors


# Gradient and directions


def gradient(f: Function, x: Tensor) -> Tensor:
    """∇f at x, of x's shape; f gives a scalar."""
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(f(x), x)[0]


def slope_along(g: Tensor, u: Tensor) -> Tensor:
    """D_u f = g·û for the gradient g; only the direction of u counts, its length is divided out."""
    if bool((norm(u) == 0).any()):
        raise ValueError("the zero vector is not a direction; give u ≠ 0")
    return dot(g, unit(u))


def directional(f: Function, p: Tensor, u: Tensor) -> Tensor:
    """D_u f at p: the slope of f in the direction of u."""
    return slope_along(gradient(f, p), u)


def gain(f: Function, p: Tensor, u: Tensor) -> Tensor:
    """f(p + u) − f(p): what a whole step of u gains, not the slope."""
    return f(p + u) - f(p)


def steepest(g: Tensor) -> Tensor:
    """The unit vector with the largest slope, g/‖g‖: Σ u_i² = 1 is shared among the axes."""
    return unit(g)


def steepest_of_linear_budget(g: Tensor) -> Tensor:
    """The best u with Σ |u_i| = 1: all of it on the axis of the largest |g_i|."""
    best = g.abs().argmax()
    u = torch.zeros_like(g)
    u[best] = g[best].sign()
    return u


def sweep(f: Function, p: Tensor, directions: int) -> tuple[Tensor, Tensor]:
    """Angles from 0 to 2π, and the slope of f at p in each, by central differences: no gradient is used. p is (2)."""
    angles = torch.linspace(0, 2 * math.pi, directions, dtype=p.dtype)
    u, h = torch.stack([angles.cos(), angles.sin()], -1), best_step(p)
    values = torch.func.vmap(f)
    return angles, (values(p + h * u) - values(p - h * u)) / (2 * h)


def log10_combinations(values: int, parameters: int) -> float:
    """log10 of values^parameters: what trying every combination would cost, instead of following the gradient."""
    return parameters * math.log10(values)


# The Jacobian


def jacobian(f: Function, x: Tensor) -> Tensor:
    """J (m, n): row j is the gradient of y_j, for f from (n) to (m)."""
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        y = f(x)
        return torch.stack([torch.autograd.grad(part, x, retain_graph=True)[0] for part in y])


def linear_prediction(f: Function, x: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
    """J Δx, and the real change y(x + Δx) − y(x); halving Δx divides their difference by about four."""
    return jacobian(f, x) @ dx, f(x + dx) - f(x)
