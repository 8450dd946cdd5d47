"""DPM-Solver++ (2M) and UniPC: few steps, by the exact solution of the linear part in λ = log(√ᾱ / √(1 − ᾱ)).

    x_t = (σ_t / σ_s) x_s + α_t ∫_{λ_s}^{λ_t} e^{−(λ_t − λ)} x̂_0(λ) dλ        α = √ᾱ, σ = √(1 − ᾱ), h = λ_t − λ_s

    first order    x̂_0 held: (σ_t / σ_s) x_s − α_t (e^{−h} − 1) x̂_0                               = DDIM
    2M             x̂_0 on a line through the last two: x̂_0 + (x̂_0 − x̂_0') / (2 r),   r = h' / h
    SDE            the same for the reverse SDE: (σ_t / σ_s) e^{−h} x_s + α_t (1 − e^{−2h}) x̂_0 + σ_t √(1 − e^{−2h}) z
    UniPC-p        a polynomial of order p through the last points (predictor), then, when x̂_0 at the new point is
                   known, once more with it (corrector): no further calls

One call a step. With e^{−h} = ratio of the noise-to-signal levels, the last step (to ᾱ = 1) is exact: x̂_0.

Systems: probability-flow-ode
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from descend.sampling.diffusion.denoiser import Denoiser, Noise
from descend.sampling.diffusion.grid import Grid, keep_some_signal

FEW = 15  # in fewer steps the last one is of first order


class Levels:
    """α, σ and λ at the points of a grid."""

    def __init__(self, grid: Grid):
        abar = keep_some_signal(grid.abar)
        self.alpha, self.sigma = abar.sqrt().tolist(), (1 - abar).sqrt().tolist()
        self.abar, self.ratio = abar.tolist(), grid.sigma.tolist()
        self.lam = [-math.log(r) if r else math.inf for r in self.ratio]

    def step(self, i: int) -> float:
        """h from point i to point i + 1."""
        return self.lam[i + 1] - self.lam[i]

    def shrink(self, i: int) -> float:
        """e^{−h} of that step."""
        return self.ratio[i + 1] / self.ratio[i]


def is_first_order(i: int, levels: Levels, count: int) -> bool:
    """The first step, and the last one where it leads to the image or the steps are few."""
    return i == 0 or (i == count - 1 and (levels.ratio[-1] == 0 or count < FEW))


def sample_dpm(denoise: Denoiser, grid: Grid, x: Tensor, noise: Noise) -> Iterator[Tensor]:
    """DPM-Solver++ 2M."""
    levels, last = Levels(grid), x
    for i, t in enumerate(grid.t.tolist()):
        x0 = denoise(x, t, levels.abar[i]).x0
        line = x0
        if not is_first_order(i, levels, len(grid)):
            line = x0 + (x0 - last) * (levels.step(i) / levels.step(i - 1) / 2)
        x = levels.sigma[i + 1] / levels.sigma[i] * x + levels.alpha[i + 1] * (1 - levels.shrink(i)) * line
        last = x0
        yield x


def sample_dpm_sde(denoise: Denoiser, grid: Grid, x: Tensor, noise: Noise) -> Iterator[Tensor]:
    """DPM-Solver++ 2M of the reverse SDE."""
    levels, last = Levels(grid), x
    for i, t in enumerate(grid.t.tolist()):
        x0 = denoise(x, t, levels.abar[i]).x0
        line = x0
        if not is_first_order(i, levels, len(grid)):
            line = x0 + (x0 - last) * (levels.step(i) / levels.step(i - 1) / 2)
        shrink = levels.shrink(i)
        fresh = levels.sigma[i + 1] * (1 - shrink**2) ** 0.5
        x = levels.sigma[i + 1] / levels.sigma[i] * shrink * x + levels.alpha[i + 1] * (1 - shrink**2) * line
        if fresh:
            x = x + fresh * noise()
        last = x0
        yield x


def sample_unipc(denoise: Denoiser, grid: Grid, x: Tensor, noise: Noise, order: int = 2) -> Iterator[Tensor]:
    """UniPC-p with B(h) = e^h − 1; it yields predicted points, corrected when the next call is made."""
    levels, count = Levels(grid), len(grid)
    seen: list[Tensor] = []
    before, used = x, 0
    for i, t in enumerate(grid.t.tolist()):
        x0 = denoise(x, t, levels.abar[i]).x0
        if i:
            x = unified_step(levels, i - 1, before, seen, used, x0)
        seen = [*seen, x0][-order:]
        used = min(order, count - i, len(seen))
        before = x
        x = unified_step(levels, i, x, seen, used, None)
        yield x


def unified_step(levels: Levels, i: int, x: Tensor, seen: list[Tensor], order: int, new: Tensor | None) -> Tensor:
    """From point i to point i + 1 by x̂_0 at points i, i − 1, .. (`seen`, the last is at i) and, corrected, at i + 1."""
    h, m0 = levels.step(i), seen[-1]
    phi = levels.shrink(i) - 1
    start = levels.sigma[i + 1] / levels.sigma[i] * x - levels.alpha[i + 1] * phi * m0
    ratios = [(levels.lam[i - k] - levels.lam[i]) / h for k in range(1, order)]
    slopes = [(seen[-1 - k] - m0) / ratios[k - 1] for k in range(1, order)]
    if new is not None:
        ratios, slopes = [*ratios, 1.0], [*slopes, new - m0]
    if not slopes:
        return start
    weights = [0.5] if len(slopes) == 1 else solve_weights(ratios, -h)
    first, *others = (w * s for w, s in zip(weights, slopes, strict=True))
    return start - levels.alpha[i + 1] * phi * sum(others, first)


def solve_weights(ratios: list[float], h: float) -> list[float]:
    """ρ with Σ_k ρ_k r_k^{n−1} = n! φ_{n+1}(h) h / B(h), n = 1 .. p: exact for polynomials of x̂_0 in λ."""
    r = torch.tensor(ratios, dtype=torch.float64)
    rows, b, scale = [], [], math.expm1(h)
    phi, factorial = scale / h - 1, 1
    for n in range(1, len(ratios) + 1):
        rows.append(r ** (n - 1))
        b.append(phi * factorial / scale)
        factorial *= n + 1
        phi = phi / h - 1 / factorial
    found: list[float] = torch.linalg.solve(torch.stack(rows), torch.tensor(b, dtype=torch.float64)).tolist()
    return found
