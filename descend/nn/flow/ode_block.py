"""Neural ODE: a residual network with infinitely many layers of one set of weights.

    residual layers    z_{t+1} = z_t + f(z_t, θ)
    neural ODE         dz/dt = f(z(t), θ)        z(T) = z(0) + ∫_0^T f(z(t), θ) dt

Euler's method with step 1 is the residual network. DLN's integral form has no z(0), with which nothing would remain of
the input. How often f is evaluated plays the part of depth: an adaptive solver decides it anew for every batch.

Systems: neural-ode
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from descend.ops.ode.solve import Solution
from descend.ops.ode.solver import Solver

Field = Callable[[Tensor, float], Tensor]


class ODEBlock(nn.Module):
    """z(0) (b, d) -> z(T) (b, d)

    Args:
        field: (z, t) -> dz/dt.
        solver: how it is solved, and how gradients come.
        end: T.
    """

    def __init__(self, field: nn.Module, solver: Solver, end: float = 1.0):
        super().__init__()
        self.field, self.solver, self.end = field, solver, end
        self.evaluations = 0
        """Of f, in the last pass."""

    def forward(self, z: Tensor) -> Tensor:
        found = self.solve(z)
        self.evaluations = found.evaluations
        return found.last

    def solve(self, z: Tensor) -> Solution:
        """The solution with its step points."""
        return self.solver.solve(lambda t, z: self.field(z, t), z, 0.0, self.end, list(self.field.parameters()))

    @torch.no_grad()
    def trajectory(self, z: Tensor, moments: int) -> Tensor:
        """z at moments + 1 times from 0 to T, for plotting (moments + 1, b, d)."""
        path = [z]
        for n in range(moments):
            begin, end = self.end * n / moments, self.end * (n + 1) / moments
            path.append(self.solver.solve(lambda t, z: self.field(z, t), path[-1], begin, end).last)
        return torch.stack(path)


class ResidualNetwork(nn.Module):
    """z + f(z, 0), then z + f(z, 1), ..: `layers` of them, with one f for all; Euler's method with step 1."""

    def __init__(self, field: nn.Module, layers: int):
        super().__init__()
        self.field, self.layers = field, layers

    def forward(self, z: Tensor) -> Tensor:
        for n in range(self.layers):
            z = z + self.field(z, float(n))
        return z
