"""Continuous normalizing flow: an ODE that moves points, and with them their density.

    dz/dt = f(z, t)        d log p(z(t))/dt = −Tr(∂f/∂z)

    sampling   z(0) ~ N(0, I), solved to T        density   z(T) = x, solved back to 0
    log p(x) = log p_0(z(0)) − ∫_0^T Tr(∂f/∂z) dt

Any f will do: no triangular Jacobian, no determinant. The trace is exact, by D reverse passes, or Hutchinson's estimate
εᵀ(∂f/∂z)ε by one, with one ε for the whole way, so that the solver sees a smooth function; it is unbiased.

Systems: continuous-normalizing-flow
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.nn.flow.bijection import Bijection, Moved
from descend.ops.ode.divergence import estimate_divergence, exact_divergence
from descend.ops.ode.solver import Solver


class ContinuousFlow(Bijection):
    """z(0) -> z(1) by a field (z, t) -> dz/dt; given ε (b, D), the trace is estimated."""

    def __init__(self, field: nn.Module, solver: Solver):
        super().__init__()
        self.field, self.solver = field, solver
        self.evaluations = 0
        """Of f, in the last pass."""

    def forward(self, z: Tensor, eps: Tensor | None = None) -> Moved:
        return self.flow(z, 0.0, 1.0, eps)

    def inverse(self, x: Tensor, eps: Tensor | None = None) -> Moved:
        return self.flow(x, 1.0, 0.0, eps)

    def flow(self, z: Tensor, begin: float, end: float, eps: Tensor | None) -> Moved:
        """z and ∫ Tr(∂f/∂z) dt, solved together as one state (b, D + 1)."""
        if not all(type(p) is nn.Parameter for p in self.field.parameters()):
            raise Mistake(
                "--parallel fsdp: a continuous flow takes reverse passes inside of its forward pass, which weights in "
                "shards do not survive; use --parallel ddp"
            )

        def slope(t: float, state: Tensor) -> Tensor:
            velocity = lambda z: self.field(z, t)
            z = state[:, :-1]
            v, trace = exact_divergence(velocity, z) if eps is None else estimate_divergence(velocity, z, eps)
            return torch.cat([v, trace[:, None]], 1)

        start = torch.cat([z, z.new_zeros(len(z), 1)], 1)
        found = self.solver.solve(slope, start, begin, end, list(self.field.parameters()))
        self.evaluations = found.evaluations
        return found.last[:, :-1], found.last[:, -1]

    def move(self, z: Tensor, begin: float, end: float) -> Tensor:
        """z alone, without the density: what sampling needs."""
        found = self.solver.solve(lambda t, z: self.field(z, t), z, begin, end, list(self.field.parameters()))
        self.evaluations = found.evaluations
        return found.last
