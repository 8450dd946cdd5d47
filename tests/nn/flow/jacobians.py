"""What tests of flows share: random layers in float64, and autograd's Jacobian as the oracle."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn

from descend.nn.flow.bijection import Bijection, Chain
from tests.close import close

DOUBLE = torch.float64
M = TypeVar("M", bound=nn.Module)


def shake(module: M, scale: float = 1.0) -> M:
    """Random weights in float64 that are far from the identity."""
    random = torch.Generator().manual_seed(0)
    module = module.double()
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(scale * torch.randn(p.shape, generator=random, dtype=DOUBLE) / max(p.shape[-1], 1) ** 0.5)
    return module


def points(n: int, size: int, seed: int = 1) -> Tensor:
    return torch.randn(n, size, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def jacobian(layer: Bijection, x: Tensor, inverse: bool = False) -> Tensor:
    """∂out_i/∂in_j of each point (b, D, D), by autograd."""
    move = layer.inverse if inverse else layer.forward
    rows = torch.autograd.functional.jacobian(lambda x: move(x)[0].sum(0), x)
    return rows.permute(1, 0, 2)


def check_layer(layer: Bijection, z: Tensor, loosen: float = 1.0) -> None:
    """Both ways undo each other to rounding, and both log-determinants are autograd's."""
    x, log_det = layer(z)
    back, log_det_back = layer.inverse(x)
    close(back, z, loosen)
    close(log_det_back, -log_det, loosen)
    close(log_det, torch.linalg.slogdet(jacobian(layer, z)).logabsdet, loosen)
    close(log_det_back, torch.linalg.slogdet(jacobian(layer, x, inverse=True)).logabsdet, loosen)


def integrate(log_prob: object, box: float = 8.0, cells: int = 400) -> float:
    """∫ p over a square of the plane."""
    line = (torch.arange(cells, dtype=DOUBLE) + 0.5) / cells * 2 * box - box
    x = torch.cartesian_prod(line, line)
    with torch.no_grad():
        p = torch.cat([log_prob(part).exp() for part in x.split(20_000)])  # type: ignore[operator]
    return float(p.sum()) * (2 * box / cells) ** 2


def chain(*layers: Bijection) -> Chain:
    return Chain(layers)
