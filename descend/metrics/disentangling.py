"""How well each unit of a code corresponds to one factor of variation, and how many factors there are.

    moves       R_jk = E |z_k(s with factor j changed) − z_k(s)|, each unit in its own standard deviation
    measure     for each factor the share of its movement that goes to its best unit, beyond an equal share 1/K,
                times, for that unit, the share of its movement that this factor causes, beyond 1/J; the mean of both
                1: a known inverse (also permuted, flipped, scaled); lower for a random rotation; near 0 if all move all
    intrinsic   two nearest neighbours (Facco and others 2017): μ_i = r_i2 / r_i1, P(μ > t) = t^−d, d = n / Σ log μ_i
    linear      the smallest number of principal components that hold 99% of the variance

The book gives no algorithm for either; "change one factor, see which code units move" is made a number here.

Systems: disentangling-measure, manifold-hypothesis
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.errors import Mistake


def unit_moves(encode: Callable[[Tensor], Tensor], make: Callable[[Tensor], Tensor], factors: Tensor) -> Tensor:
    """R (J, K): mean movement of each unit when one factor takes another example's value.

    `make` turns factors (n, J) into observations, `encode` these into codes (n, K).
    """
    if len(factors) < 2:
        raise Mistake("moves of units need at least 2 examples")
    z = encode(make(factors))
    scale = z.std(0).clamp(min=1e-12)
    rows = []
    for j in range(factors.shape[1]):
        changed = factors.clone()
        changed[:, j] = factors[:, j].roll(1)
        rows.append(((encode(make(changed)) - z) / scale).abs().mean(0))
    return torch.stack(rows)


def disentangling(moves: Tensor) -> float:
    """The measure 0..1 of moves (J, K); needs at least two factors and two units."""
    factors, units = moves.shape
    if factors < 2 or units < 2:
        raise Mistake(f"{factors} factors and {units} units: a measure of disentangling needs at least 2 of both")
    by_factor = moves / moves.sum(1, keepdim=True).clamp(min=1e-12)
    by_unit = moves / moves.sum(0, keepdim=True).clamp(min=1e-12)
    best, unit = by_factor.max(1)
    alone = by_unit.gather(1, unit[:, None])[:, 0]
    complete = ((best - 1 / units) / (1 - 1 / units)).clamp(min=0)
    pure = ((alone - 1 / factors) / (1 - 1 / factors)).clamp(min=0)
    return float(((complete + pure) / 2).mean())


def neighbour_dimension(x: Tensor, share: float = 0.9) -> float:
    """Intrinsic dimension of rows (n, D) from the ratio of the two nearest distances, without the largest ratios.

    d is the slope of −log(1 − F(μ)) against log μ through 0, over the smallest `share` of the ratios.
    """
    if len(x) < 10:
        raise Mistake(f"{len(x)} rows: an intrinsic dimension needs at least 10")
    near = torch.cdist(x, x).topk(3, largest=False).values[:, 1:]
    near = near[near[:, 0] > 0]
    ratio = (near[:, 1] / near[:, 0]).log().sort().values
    n = len(ratio)
    kept = ratio[: int(share * n)]
    height = -torch.log1p(-torch.arange(1, len(kept) + 1, dtype=x.dtype) / n)
    return float((kept * height).sum() / kept.square().sum())


def linear_dimension(x: Tensor, share: float = 0.99) -> int:
    """Fewest principal components that hold this share of the variance of rows (n, D)."""
    spectrum = torch.linalg.svdvals(x - x.mean(0)).square()
    return int((spectrum.cumsum(0) < share * spectrum.sum()).sum()) + 1
