"""Continuous normalizing flow: points move by an ODE, dz/dt = f(z, t), and their density with them.

    log p(x) = log N(z(0); 0, I) − ∫_0^1 Tr(∂f/∂z) dt,  solved back from z(1) = x

The trace is exact, or Hutchinson's estimate where noise ε is given (`nn/flow/continuous.py`).

Systems: continuous-normalizing-flow
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.contracts import Chance, Wish
from descend.nn.flow.bijection import standard_normal
from descend.nn.flow.continuous import ContinuousFlow
from descend.nn.flow.velocity import Velocity
from descend.ops.ode.solver import Gradient, Method, Solver
from descend.ranges import Count, Depth, Positive, Width
from descend.sampling.velocity import OFFERS, follow_wish
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class CNFConfig:
    size: Width = 2
    """D, the coordinates of a point."""
    width: Width = 64
    depth: Depth = 3
    """Hidden layers of f."""
    method: Method = "dopri5"
    steps: Count = 10
    """Of a method with fixed steps."""
    rtol: Positive = 1e-4
    """Error of a step, relative; adaptive methods only."""
    atol: Positive = 1e-4
    gradient: Gradient = "autograd"
    """Through the solver's steps, or by the adjoint method, which keeps none of them."""


class CNF(Pretrained):
    """points (b, size) -> log p(x) (b)"""

    Config = CNFConfig
    offers = OFFERS

    def __init__(self, config: CNFConfig):
        super().__init__()
        c = self.config = config
        solver = Solver(c.method, c.steps, c.rtol, c.atol, gradient=c.gradient)
        self.flow = ContinuousFlow(Velocity(c.size, c.width, c.depth, nn.Tanh()), solver)

    def forward(self, x: Tensor) -> Tensor:
        return self.log_prob(x)

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x) of each point (b), with the exact trace."""
        prior, log_det = self.terms(x)
        return prior + log_det

    def terms(self, x: Tensor, eps: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """log p_z(z(0)) and log|det| of each point, whose sum is log p(x); with ε, the second is an estimate."""
        z, log_det = self.flow.inverse(x, eps)
        return standard_normal(z), log_det

    def velocity(self, x: Tensor, t: float) -> Tensor:
        """f(x, t)"""
        return self.flow.field(x, t)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New points."""
        return follow_wish(self.flow.field, chance.normal(self.config.size), self.flow.solver, wish)


SIZES: dict[str, CNFConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = CNFConfig(size=3, width=8, depth=2)


def TINY_INPUT() -> Tensor:
    """Four points."""
    return torch.randn(4, TINY.size, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("CNF")
