"""Inverse autoregressive flow: a sample in one pass, the density of a given point one coordinate after another.

    x_n = e^{s_n(z_{1:n−1})} z_n + b_n(z_{1:n−1})        log p(x) = log N(z; 0, I) − Σ_layers Σ_n s_n(z_{1:n−1})

MAF with x and z exchanged. Training by likelihood costs D passes a layer, so it is used where samples come first; as
the posterior of a VAE its layers are in `nn/flow/posterior.py`.

Systems: inverse-autoregressive-flow
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.models._flows import Flow
from descend.nn.flow.autoregressive import InverseAutoregressive, orders
from descend.nn.flow.bijection import Chain
from descend.nn.flow.made import MADE
from descend.nn.flow.transforms import Affine
from descend.ranges import Depth, Width
from descend.weights.layout import Layout


@dataclass(frozen=True)
class IAFConfig:
    size: Width = 2
    """D, the coordinates of a point."""
    layers: Depth = 8
    width: Width = 64
    """Units in a hidden layer of a masked network."""
    depth: Depth = 2
    """Its hidden layers."""


class IAF(Flow):
    """points (b, size) -> log p(x) (b)"""

    Config = IAFConfig

    def __init__(self, config: IAFConfig):
        super().__init__()
        c = self.config = config
        h = Affine()
        self.flow = Chain(
            InverseAutoregressive(MADE(degrees, h.numbers, c.width, c.depth), h) for degrees in orders(c.size, c.layers)
        )


SIZES: dict[str, IAFConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = IAFConfig(size=3, layers=2, width=8, depth=1)


def TINY_INPUT() -> Tensor:
    """Four points."""
    return torch.randn(4, TINY.size, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("IAF")
