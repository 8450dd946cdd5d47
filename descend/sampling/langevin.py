"""Langevin dynamics: samples from a density of which only the score s = ∇ log p is known.

    DLN       x_{k+1} = x_k + η s(x_k) + √(2η) ε_k           ε ~ N(0, I),  k = 0..K−1: K updates
    S940      x_{k+1} = x_k + (δ/2) s(x_k) + √δ z_k          the same steps with η = δ/2
    ascent    x_{k+1} = x_k + η s(x_k)                       no noise: collapses to the mode of its basin
    annealed  levels σ_T > … > σ_1, K steps at each with the score of that level, η_t = η σ_t²/σ_1²

Exact as η → 0 and K → ∞; at a finite η too wide (`theory/langevin.py`). DLN prints k = 0, …, K for K steps; K updates
are made here. It calls the sampler stochastic gradient Langevin dynamics, though no minibatch gradient is involved.
The noise is given, one tensor a step, so that whoever samples decides where randomness comes from. Annealed with one
level is plain.

Systems: langevin-sampler, annealed-langevin
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from descend.ops.energy.score import Score

LevelScore = Callable[[Tensor, int], Tensor]
"""points (n, d) and the number of a noise level -> vectors (n, d)"""


def langevin_path(score: Score, x: Tensor, noises: Iterable[Tensor], eta: float) -> Tensor:
    """All states (K + 1, n, d) of chains from x (n, d); as many steps as there are noises."""
    path = [x]
    for noise in noises:
        path.append(path[-1] + eta * score(path[-1]) + math.sqrt(2 * eta) * noise)
    return torch.stack(path)


def langevin(score: Score, x: Tensor, noises: Iterable[Tensor], eta: float) -> Tensor:
    """The last state (n, d).

    Systems: langevin-sampler
    """
    for noise in noises:
        x = x + eta * score(x) + math.sqrt(2 * eta) * noise
    return x


def langevin_by_delta(score: Score, x: Tensor, noises: Iterable[Tensor], delta: float) -> Tensor:
    """The same with steps of (δ/2) s and noise of √δ."""
    for noise in noises:
        x = x + delta / 2 * score(x) + math.sqrt(delta) * noise
    return x


def ascend_score(score: Score, x: Tensor, eta: float, steps: int) -> Tensor:
    """All states (steps + 1, n, d) without noise: to the nearest mode."""
    path = [x]
    for _ in range(steps):
        path.append(path[-1] + eta * score(path[-1]))
    return torch.stack(path)


def level_rates(sigmas: Sequence[float], eta: float) -> list[float]:
    """η_t = η σ_t²/σ_min² of each level: the step as long, compared with the noise, at every level."""
    least = min(sigmas)
    return [eta * (sigma / least) ** 2 for sigma in sigmas]


def annealed_langevin(
    score: LevelScore, x: Tensor, noises: Iterable[Iterable[Tensor]], rates: Sequence[float]
) -> Tensor:
    """The last state: plain Langevin at level 0, 1, .. of `rates` in turn, the first the noisiest.

    `noises` has an entry for each level, with a tensor for each step at it.

    Systems: annealed-langevin
    """
    for level, (rate, steps) in enumerate(zip(rates, noises, strict=True)):
        x = langevin(lambda at, level=level: score(at, level), x, steps, rate)  # type: ignore[misc]
    return x
