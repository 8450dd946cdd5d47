"""Bradley-Terry: how strong each item is, from who won against whom.

    P(i beats j) = p_i / (p_i + p_j) = σ(r_i − r_j),   r = log p
    log L = Σ_ij w_ij log (p_i / (p_i + p_j))           w_ij: how often i beat j
    p_i ← Σ_j w_ij / Σ_j (n_ij / (p_i + p_j))           n_ij = w_ij + w_ji; each step raises log L (Zermelo, 1929)

Only differences of r are known, so their mean is 0. A maximum exists if and only if from every item a chain of wins
leads to every other one: if a group never lost to the rest, its strengths grow without bound, and if two groups never
met, nothing relates them. Both are named. The steps converge linearly; Newton's, which follow, quadratically.

Systems: bradley-terry
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake

ASCENTS, NEWTON, SMALL = 20, 50, 1e-12
SHOWN = 5  # items that a message names


def win_probability(first: Tensor, second: Tensor) -> Tensor:
    """σ(r_i − r_j) for rewards r = log p."""
    return (first - second).sigmoid()


def strength_share(first: Tensor, second: Tensor) -> Tensor:
    """p_i / (p_i + p_j) for strengths p."""
    return first / (first + second)


def log_likelihood(r: Tensor, wins: Tensor) -> Tensor:
    """Σ_ij w_ij log σ(r_i − r_j)"""
    return (wins * torch.nn.functional.logsigmoid(r[:, None] - r)).sum()


def fit_strengths(wins: Tensor) -> Tensor:
    """r (n), mean 0, of the largest likelihood for wins (n, n), w_ij times i beat j."""
    w = check_wins(wins)
    r = torch.zeros(len(w), dtype=torch.float64)
    for _ in range(ASCENTS):
        r = ascend(r, w)
    for _ in range(NEWTON):
        step = newton_step(r, w)
        r = r + step
        if float(step.abs().max()) < SMALL:
            break
    return r - r.mean()


def ascend(r: Tensor, wins: Tensor) -> Tensor:
    """One step of Zermelo: p_i = (wins of i) / Σ_j n_ij / (p_i + p_j)"""
    p = (r - r.mean()).exp()
    met = wins + wins.T
    found = (wins.sum(1) / (met / (p[:, None] + p)).sum(1)).log()
    return found - found.mean()


def newton_step(r: Tensor, wins: Tensor) -> Tensor:
    """(−H)⁻¹ g, no longer than 1 in any item; the direction (1, .., 1), along which nothing changes, is left out."""
    chance = win_probability(r[:, None], r)
    met = wins + wins.T
    slope = (wins - met * chance).sum(1)
    bend = met * chance * (1 - chance)
    curvature = torch.diag(bend.sum(1)) - bend + 1.0 / len(r)
    step = torch.linalg.solve(curvature, slope)
    return step / step.abs().max().clamp_min(1.0)


def check_wins(wins: Tensor) -> Tensor:
    """The games as numbers, or what keeps them from having strengths."""
    w = wins.to(torch.float64).clone()
    n = len(w)
    if w.dim() != 2 or w.shape != (n, n) or n < 2:
        raise Mistake(f"wins of shape {tuple(wins.shape)}: a square table of 2 or more items is needed")
    if not bool(w.isfinite().all()) or bool((w < 0).any()):
        raise Mistake("wins: a number in the table is negative or not finite; each says how often i beat j")
    w.fill_diagonal_(0.0)
    if len(met := reach(w + w.T)) < n:
        raise Mistake(
            f"items {show(met, n)} never met the others: without a game between them groups cannot be compared"
        )
    if len(lost := reach(w.T)) < n:  # those that beat item 0, directly or through others
        raise Mistake(
            f"items {show(lost, n)} never lost to the others: the likelihood has no maximum; drop them or add games"
        )
    if len(won := reach(w)) < n:
        raise Mistake(
            f"items {show(won, n)} never won against the others: the likelihood has no maximum; drop them or add games"
        )
    return w


def reach(edges: Tensor) -> set[int]:
    """The items that a chain of edges leads to from item 0."""
    found, new = {0}, [0]
    while new:
        follows = edges[new.pop()].nonzero().flatten().tolist()
        new += [i for i in follows if i not in found]
        found |= set(follows)
    return found


def show(items: set[int], n: int) -> str:
    """The numbers of some of the n items."""
    named = sorted(items)
    return ", ".join(map(str, named[:SHOWN])) + (f", .. ({len(named)} of {n})" if len(named) > SHOWN else "")


def count_wins(pairs: Tensor, items: int) -> Tensor:
    """(winner, loser) rows (m, 2) -> wins (n, n)"""
    return torch.bincount(pairs[:, 0] * items + pairs[:, 1], minlength=items * items).reshape(items, items)
