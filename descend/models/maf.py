"""Masked autoregressive flow: the density of all coordinates in one pass, samples one coordinate after another.

    z_n = (x_n − b_n(x_{1:n−1})) e^{−s_n(x_{1:n−1})}        log p(x) = log N(z; 0, I) − Σ_layers Σ_n s_n

Each layer's s and b are the outputs of one masked network; the order of the coordinates is reversed from layer to
layer. The Jacobian ∂z/∂x of a layer is lower triangular in its order (DLN prints "upper").

Systems: masked-autoregressive-flow
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.models._flows import Flow
from descend.nn.flow.autoregressive import MaskedAutoregressive, orders
from descend.nn.flow.bijection import Chain
from descend.nn.flow.made import MADE
from descend.nn.flow.transforms import Affine
from descend.ranges import Depth, Width
from descend.weights.layout import Layout


@dataclass(frozen=True)
class MAFConfig:
    size: Width = 2
    """D, the coordinates of a point."""
    layers: Depth = 8
    width: Width = 128
    """Units in a hidden layer of a masked network."""
    depth: Depth = 2
    """Its hidden layers."""


class MAF(Flow):
    """points (b, size) -> log p(x) (b)"""

    Config = MAFConfig

    def __init__(self, config: MAFConfig):
        super().__init__()
        c = self.config = config
        h = Affine()
        self.flow = Chain(
            MaskedAutoregressive(MADE(degrees, h.numbers, c.width, c.depth), h) for degrees in orders(c.size, c.layers)
        )


SIZES: dict[str, MAFConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = MAFConfig(size=3, layers=2, width=8, depth=1)


def TINY_INPUT() -> Tensor:
    """Four points."""
    return torch.randn(4, TINY.size, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("MAF")
