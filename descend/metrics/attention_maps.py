"""Reading a matrix of attention weights A (t, s): is it a distribution, where does it look, which pattern is it?

    row sums       Σ_j a_ij = 1                                   a_ij: the share of i's new vector that comes from j
    asymmetry      ‖A − Aᵀ‖                                        in general not 0: "sat" looks at "cat" more than back
    entropy        H_i = −Σ_j a_ij log a_ij                        log s for equal weights, 0 for one alone
    distance       Σ_j a_ij |i − j|                                how far a position looks on average

Four patterns (VOM 8.8), each a score that is 0 for equal weights and 1 for the pure pattern:

    diagonal       mass with |i − j| ≤ 1, above that of equal weights
    stripe         the largest column mean, above 1/s
    block          mass inside the best cut into equal neighbouring groups, above that of equal weights, times how
                   evenly it lies there (a diagonal lies in blocks too, but not evenly)
    sparse         1 − mean entropy / log s

`pattern` names the largest of the first three; sparse is what concentrates without any of them.

Systems: attention-maps-analysis
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

STRONG = 0.5
"""A pattern whose score is below this is not called one."""


@dataclass(frozen=True)
class AttentionReport:
    """What `report` finds in one matrix of weights."""

    row_sums: Tensor
    asymmetry: float
    diagonal_mass: float
    entropy: Tensor
    large: Tensor
    """For each row, how many weights are above the threshold."""
    tokens: tuple[str, ...]
    weights: Tensor

    def weight(self, query: str, key: str) -> float:
        """a(query, key), by the tokens' names."""
        return float(self.weights[self.tokens.index(query), self.tokens.index(key)])

    def table(self) -> str:
        """The weights with their tokens, one row a query."""
        wide = max(6, *(len(token) for token in self.tokens)) + 2
        lines = [" " * wide + "".join(f"{token:>{wide}}" for token in self.tokens)]
        for token, row in zip(self.tokens, self.weights.tolist(), strict=True):
            lines.append(f"{token:<{wide}}" + "".join(f"{a:>{wide}.3f}" for a in row))
        return "\n".join(lines)


def report(a: Tensor, tokens: list[str], threshold: float = 0.5) -> AttentionReport:
    """Row sums, asymmetry, diagonal mass, entropies and large weights of self-attention A (t, t)."""
    if a.shape != (len(tokens), len(tokens)):
        raise ValueError(f"{len(tokens)} tokens, but weights of shape {tuple(a.shape)}: self-attention is square")
    return AttentionReport(
        row_sums=a.sum(-1),
        asymmetry=float(torch.linalg.matrix_norm(a - a.T)),
        diagonal_mass=float(a.diagonal().mean()),
        entropy=entropy(a),
        large=(a > threshold).sum(-1),
        tokens=tuple(tokens),
        weights=a,
    )


def entropy(a: Tensor) -> Tensor:
    """H of each row in nats: (.., t, s) -> (.., t)."""
    return torch.special.entr(a).sum(dim=-1)


def distance(a: Tensor) -> Tensor:
    """Σ_j a_ij |i − j| of each row: (.., t, t) -> (.., t)."""
    return (a * offsets(a).abs()).sum(dim=-1)


def grid_distance(a: Tensor, grid: tuple[int, int]) -> Tensor:
    """The same between the patches of an image, Σ_j a_ij ‖place_i − place_j‖: (.., t, t) -> (.., rows · columns).

    Special tokens come first; what a patch gives to them is left out, and the rest of its row is scaled to 1.
    """
    patches = a[..., -grid[0] * grid[1] :, -grid[0] * grid[1] :]
    places = torch.cartesian_prod(*(torch.arange(n, device=a.device, dtype=a.dtype) for n in grid)).view(-1, 2)
    return (patches * torch.cdist(places, places)).sum(dim=-1) / patches.sum(dim=-1)


def mass_at(a: Tensor, source: Tensor) -> Tensor:
    """a[i, source_i]: the weight on the position that matters; a (.., t, s), source (.., t) -> (.., t)."""
    return a.gather(-1, source[..., None]).squeeze(-1)


def offsets(a: Tensor) -> Tensor:
    """j − i (t, s)."""
    t, s = a.shape[-2:]
    return torch.arange(s, device=a.device) - torch.arange(t, device=a.device)[:, None]


def excess(a: Tensor, inside: Tensor) -> Tensor:
    """The mass of A inside a set of cells, 0 for equal weights and 1 when all of it is there."""
    mass, equal = (a * inside).sum(dim=(-2, -1)) / a.shape[-2], inside.to(a.dtype).mean()
    return (mass - equal) / (1 - equal) if float(equal) < 1 else mass * 0


def diagonal_score(a: Tensor) -> Tensor:
    """Mass at the position itself and its neighbours."""
    return excess(a, offsets(a).abs() <= 1)


def stripe_score(a: Tensor) -> Tensor:
    """The most popular column."""
    s = a.shape[-1]
    return (a.mean(dim=-2).amax(dim=-1) - 1 / s) / (1 - 1 / s)


def block_score(a: Tensor) -> Tensor:
    """The best of all cuts into equal neighbouring groups of 2 or more."""
    n = a.shape[-1]
    sizes = [size for size in range(2, n // 2 + 1) if n % size == 0]
    scores = [group_mass(a, size) for size in sizes]
    return torch.stack(scores).amax(dim=0) if scores else a.sum(dim=(-2, -1)) * 0


def group_mass(a: Tensor, size: int) -> Tensor:
    """Excess mass inside groups of `size`, times the evenness of the weights there."""
    group = torch.arange(a.shape[-1], device=a.device) // size
    inside = group[:, None] == group
    within = a * inside
    share = within / within.sum(dim=-1, keepdim=True).clamp_min(1e-12)
    return excess(a, inside).clamp_min(0) * entropy(share).mean(dim=-1) / math.log(size)


def sparse_score(a: Tensor) -> Tensor:
    """1 − H / log s, averaged over the rows."""
    return 1 - entropy(a).mean(dim=-1) / math.log(a.shape[-1])


def pattern_scores(a: Tensor) -> dict[str, float]:
    """The four scores of one matrix A (t, t)."""
    kinds = (diagonal_score, stripe_score, block_score, sparse_score)
    return {kind.__name__.removesuffix("_score"): float(kind(a)) for kind in kinds}


def pattern(a: Tensor) -> str:
    """diagonal, stripe, block, sparse, or spread when there is none."""
    scores = pattern_scores(a)
    sparse = scores.pop("sparse")
    best = max(scores, key=scores.__getitem__)
    if scores[best] >= STRONG:
        return best
    return "sparse" if sparse >= STRONG else "spread"
