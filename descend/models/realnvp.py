"""RealNVP: affine coupling layers that take turns in what they keep.

    z -> [ x_A = z_A,  x_B = e^{s(z_A)} ∘ z_B + b(z_A) ] -> [A and B exchanged] -> .. -> x
    log p(x) = −½‖f⁻¹(x)‖² − (D/2) log 2π − Σ_layers Σ_j s_j

The squared norm is missing in DLN's batch loss, and the log-determinant of the inverse is −Σ s, at each layer's own
input. s and b are two outputs of one network. DLN's two moons take four such layers: two, each for both axes.

Systems: realnvp
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.models._flows import Flow
from descend.nn.flow.bijection import Chain
from descend.nn.flow.coupling import Conditioner, Coupling, alternate
from descend.nn.flow.transforms import Affine
from descend.ranges import Depth, Width
from descend.weights.layout import Layout


@dataclass(frozen=True)
class RealNVPConfig:
    size: Width = 2
    """D, the coordinates of a point: at least 2."""
    couplings: Depth = 8
    """Layers, each of which keeps the half that the one before it moved."""
    width: Width = 128
    """Units in a hidden layer of the networks for s and b."""
    depth: Depth = 2
    """Their hidden layers."""

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ValueError(f"size {self.size}: a coupling layer needs at least 2 coordinates")


class RealNVP(Flow):
    """points (b, size) -> log p(x) (b)"""

    Config = RealNVPConfig

    def __init__(self, config: RealNVPConfig):
        super().__init__()
        c = self.config = config
        h = Affine()
        self.flow = Chain(
            Coupling(c.size, kept, Conditioner(len(kept), c.size - len(kept), h.numbers, c.width, c.depth), h)
            for kept in alternate(c.size, c.couplings)
        )


SIZES: dict[str, RealNVPConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = RealNVPConfig(size=3, couplings=3, width=8, depth=1)


def TINY_INPUT() -> Tensor:
    """Four points."""
    return torch.randn(4, TINY.size, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("RealNVP")
