"""Neural ODE as a classifier or regressor: lift the input, let an ODE move it, read off the answer.

    z(0) = W_in x + b_in        z(1) = z(0) + ∫_0^1 f(z(t), t) dt        y = W_out z(1) + b_out

f has one set of weights for all times; Euler's method with step 1 is one residual layer. Autograd goes through the
solver's steps, or gradients come by the adjoint method. (z(0) is missing in DLN's print of the integral.)

Systems: neural-ode, adjoint-sensitivity
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.nn.flow.ode_block import ODEBlock
from descend.nn.flow.velocity import Velocity
from descend.ops.ode.solver import Gradient, Method, Solver
from descend.ranges import Count, Depth, Positive, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class NeuralODEConfig:
    """A recipe takes inputs and outputs from its data."""

    inputs: Width = 784
    outputs: Width = 10
    state: Width = 8
    """d, the coordinates that move; more than the data has, so that paths need not cross."""
    width: Width = 32
    """Units in a hidden layer of f."""
    depth: Depth = 1
    """Hidden layers of f."""
    method: Method = "dopri5"
    steps: Count = 10
    """Of a method with fixed steps."""
    rtol: Positive = 1e-3
    """Error of a step, relative; adaptive methods only."""
    atol: Positive = 1e-4
    gradient: Gradient = "autograd"
    """Through the solver's steps, or by the adjoint method, which keeps none of them."""


class NeuralODE(Pretrained):
    """x (b, inputs), or anything that flattens to it -> y (b, outputs)"""

    Config = NeuralODEConfig

    def __init__(self, config: NeuralODEConfig):
        super().__init__()
        c = self.config = config
        self.lift = nn.Linear(c.inputs, c.state)
        solver = Solver(c.method, c.steps, c.rtol, c.atol, gradient=c.gradient)
        self.block = ODEBlock(Velocity(c.state, c.width, c.depth, nn.Tanh()), solver)
        self.head = nn.Linear(c.state, c.outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))

    def features(self, x: Tensor) -> Tensor:
        """z(1) (b, state)"""
        return self.block(self.lift(x.flatten(1)))

    @property
    def evaluations(self) -> int:
        """How often f was evaluated in the last pass: what depth is for a network of layers."""
        return self.block.evaluations


SIZES: dict[str, NeuralODEConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = NeuralODEConfig(inputs=5, outputs=3, state=4, width=6)


def TINY_INPUT() -> Tensor:
    """Two examples."""
    return torch.randn(2, TINY.inputs, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("NeuralODE")
