"""Shallow network: one hidden layer of width N, and a linear read-out without a bias.

    f_N(x) = Σ_{j=1}^N a_j σ(w_j·x + b_j)        N (d + 2) parameters for one output

It comes as near as wished to any continuous function on a compact set, given enough units. It is an MLP of two layers
without the output's bias (MF 9.1.1). Erratum: DLN prints F(W⁻¹·F(W⁰·X)); W⁻¹ is W¹, the second layer, not an
inverse, and the outer F is the identity.

Systems: shallow-network
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.models.mlp import ACTIVATIONS, Activation
from descend.ranges import Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class ShallowNetworkConfig:
    """d inputs, N = width hidden units."""

    inputs: Width = 1
    width: Width = 64
    outputs: Width = 1
    activation: Activation = "tanh"


class ShallowNetwork(Pretrained):
    """x (b, inputs), or anything that flattens to it -> y (b, outputs)"""

    Config = ShallowNetworkConfig

    def __init__(self, config: ShallowNetworkConfig):
        super().__init__()
        self.config = config
        self.hidden = nn.Linear(config.inputs, config.width)
        self.out = nn.Linear(config.width, config.outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(ACTIVATIONS[self.config.activation](self.hidden(x.flatten(1))))


SIZES = {"mf-100": ShallowNetworkConfig(inputs=3, width=100)}
PARAMETERS = {"mf-100": 500}
TINY = ShallowNetworkConfig(inputs=3, width=5, outputs=2)


def TINY_INPUT() -> Tensor:
    """Two examples."""
    return torch.randn(2, TINY.inputs, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("ShallowNetwork")
