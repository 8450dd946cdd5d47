"""Spline flow: coupling layers whose function is a monotone rational-quadratic spline, so that one layer can tear.

    x_A = z_A        z_B = spline(x_B; g(x_A))  of `pieces` pieces on −bound..bound, the identity outside

An affine layer can only stretch; a spline bends any way that rises, and needs fewer layers for separate pieces of mass.

Systems: general-coupling-flow
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.models._flows import Flow
from descend.nn.flow.bijection import Chain
from descend.nn.flow.coupling import Conditioner, Coupling, alternate
from descend.nn.flow.transforms import Spline
from descend.ranges import Depth, Positive, Width
from descend.weights.layout import Layout


@dataclass(frozen=True)
class SplineFlowConfig:
    size: Width = 2
    """D, the coordinates of a point: at least 2."""
    couplings: Depth = 4
    pieces: Depth = 8
    """Of a spline: at least 2."""
    bound: Positive = 5.0
    """Splines bend from −bound to bound; beyond it nothing moves."""
    width: Width = 64
    depth: Depth = 2

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ValueError(f"size {self.size}: a coupling layer needs at least 2 coordinates")
        if self.pieces < 2:
            raise ValueError(f"pieces {self.pieces}: a spline of one piece is the identity; take at least 2")


class SplineFlow(Flow):
    """points (b, size) -> log p(x) (b)"""

    Config = SplineFlowConfig

    def __init__(self, config: SplineFlowConfig):
        super().__init__()
        c = self.config = config
        h = Spline(c.pieces, c.bound)
        self.flow = Chain(
            Coupling(c.size, kept, Conditioner(len(kept), c.size - len(kept), h.numbers, c.width, c.depth), h)
            for kept in alternate(c.size, c.couplings)
        )


SIZES: dict[str, SplineFlowConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = SplineFlowConfig(size=3, couplings=2, pieces=4, width=8, depth=1)


def TINY_INPUT() -> Tensor:
    """Four points."""
    return torch.randn(4, TINY.size, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("SplineFlow")
