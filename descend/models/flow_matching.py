"""A velocity field learned by flow matching: from noise at t = 0 to data at t = 1.

    dx/dt = v(x, t)        trained by ‖v(x_t, t) − (x_1 − (1 − σ) x_0)‖² (`losses/flow_matching.py`)

Sampling solves the ODE forwards, by any method and number of steps; the likelihood of a point is that of a continuous
normalizing flow, solved back with the trace of ∂v/∂x.

Systems: flow-matching
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.contracts import Chance, Wish
from descend.nn.flow.bijection import standard_normal
from descend.nn.flow.continuous import ContinuousFlow
from descend.nn.flow.velocity import Velocity
from descend.ops.ode.solver import Method, Solver
from descend.ranges import Count, Depth, Positive, Width
from descend.sampling.velocity import OFFERS, follow_wish
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class FlowMatchingConfig:
    size: Width = 2
    """D, the coordinates of a point."""
    width: Width = 256
    depth: Depth = 4
    """Hidden layers of v."""
    method: Method = "dopri5"
    """Of samples and likelihoods."""
    steps: Count = 50
    """Of a method with fixed steps."""
    rtol: Positive = 1e-5
    atol: Positive = 1e-5


class FlowMatching(Pretrained):
    """points (b, size), times (b) -> velocities (b, size)"""

    Config = FlowMatchingConfig
    offers = OFFERS

    def __init__(self, config: FlowMatchingConfig):
        super().__init__()
        c = self.config = config
        solver = Solver(c.method, c.steps, c.rtol, c.atol)
        self.flow = ContinuousFlow(Velocity(c.size, c.width, c.depth, nn.SiLU()), solver)

    def forward(self, x: Tensor, t: Tensor | float) -> Tensor:
        return self.flow.field(x, t)

    def velocity(self, x: Tensor, t: float) -> Tensor:
        """v(x, t)"""
        return self.flow.field(x, t)

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x) of each point (b), as a continuous flow."""
        z, log_det = self.flow.inverse(x)
        return standard_normal(z) + log_det

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New points."""
        return follow_wish(self.flow.field, chance.normal(self.config.size), self.flow.solver, wish)


SIZES: dict[str, FlowMatchingConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = FlowMatchingConfig(size=3, width=8, depth=2)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Four points and their times."""
    random = torch.Generator().manual_seed(0)
    return torch.randn(4, TINY.size, generator=random), torch.rand(4, generator=random)


LAYOUT = Layout("FlowMatching")
