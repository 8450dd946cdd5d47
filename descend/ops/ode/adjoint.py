"""The adjoint method: the gradient of an ODE's solution by another ODE, solved backwards in time.

    a(t) = ∂L/∂z(t)        da/dt = −aᵀ ∂f/∂z        ∂L/∂θ = −∫_T^0 aᵀ ∂f/∂θ dt

z, a and the gradient of θ are one state that is solved from T to 0, so nothing of the way forward is kept but z at the
times asked for: memory does not grow with the number of steps, where autograd through the solver keeps them all. The
gradient is that of the exact solution, so it agrees with autograd's within the solver's tolerance. DLN names the
method only; these are the equations of its source.

Systems: adjoint-sensitivity
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from descend.ops.ode.solve import EVALUATIONS, Slope, Solution, odeint, rms


@dataclass
class Problem:
    """What both directions need."""

    f: Slope
    t: list[float]
    method: str
    rtol: float
    atol: float
    most: int
    tell: Callable[[int], None]
    """Called with the number of evaluations on the way back."""
    found: Solution | None = None


def odeint_adjoint(
    f: Slope,
    z0: Tensor,
    t: Sequence[float],
    parameters: Sequence[Tensor],
    method: str = "dopri5",
    rtol: float = 1e-6,
    atol: float = 1e-9,
    most: int = EVALUATIONS,
    tell: Callable[[int], None] = lambda count: None,
) -> Solution:
    """As `odeint`; its gradient with respect to z0 and the parameters that f uses comes by the adjoint method."""
    problem = Problem(f, [float(time) for time in t], method, rtol, atol, most, tell)
    z = Adjoint.apply(problem, z0, *parameters)
    assert problem.found is not None
    return Solution(z, problem.found.evaluations, problem.found.points, problem.found.rejected)


class Adjoint(torch.autograd.Function):
    """z at all times; backward solves for a and the gradient of θ."""

    @staticmethod
    def forward(ctx: Any, problem: Problem, z0: Tensor, *parameters: Tensor) -> Tensor:
        p = problem
        p.found = odeint(p.f, z0, p.t, p.method, p.rtol, p.atol, p.most)
        ctx.problem, ctx.parameters = p, parameters
        ctx.save_for_backward(p.found.z)
        return p.found.z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (z,), p = ctx.saved_tensors, ctx.problem
        augmented = Augmented(p.f, ctx.parameters, z[0].shape)
        a, g = grad[-1], z.new_zeros(augmented.count)
        evaluations = 0
        for i in range(len(p.t) - 1, 0, -1):
            start = torch.cat([z[i].flatten(), a.flatten(), g])
            back = odeint(augmented, start, [p.t[i], p.t[i - 1]], p.method, p.rtol, p.atol, p.most, augmented.norm)
            _, a, g = augmented.split(back.last)
            a, evaluations = a + grad[i - 1], evaluations + back.evaluations
        p.tell(evaluations)
        return None, a, *augmented.shape_gradients(g)


class Augmented:
    """The slope of (z, a, gradient of θ), laid end to end."""

    def __init__(self, f: Slope, parameters: Sequence[Tensor], shape: torch.Size):
        self.f, self.parameters, self.shape = f, list(parameters), shape
        self.count = sum(p.numel() for p in self.parameters)

    def split(self, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        n = self.shape.numel()
        z, a, g = state.split([n, n, self.count])
        return z.view(self.shape), a.view(self.shape), g

    def __call__(self, t: float, state: Tensor) -> Tensor:
        z, a, _ = self.split(state)
        with torch.enable_grad():
            z = z.detach().requires_grad_(True)
            slope = self.f(t, z)
            found = torch.autograd.grad(slope, [z, *self.parameters], a, allow_unused=True, materialize_grads=True)
        return torch.cat([slope.detach().flatten(), *(-gradient.flatten() for gradient in found)])

    def norm(self, error: Tensor) -> Tensor:
        """The largest of the three parts' own: many parameters must not hide an error of z."""
        return torch.stack([rms(part) for part in self.split(error) if part.numel()]).max()

    def shape_gradients(self, g: Tensor) -> list[Tensor]:
        parts = g.split([p.numel() for p in self.parameters])
        return [part.view_as(p) for part, p in zip(parts, self.parameters, strict=True)]
