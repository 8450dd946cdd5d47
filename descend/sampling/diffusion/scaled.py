"""Samplers in the scaled space x̄ = x / √ᾱ = x_0 + σ ε, where the probability flow is dx̄ / dσ = ε (Karras et al.).

    Euler        x̄ ← x̄ + (σ' − σ) ε                                         = DDIM at the same levels
    ancestral    x̄ ← x̄ + (σ_down − σ) ε + σ_up z,   σ_up² = σ'² (σ² − σ'²) / σ²,   σ_down² = σ'² − σ_up²
    Heun         the mean of the slopes at both ends; Euler where σ' = 0. Second order, two calls a step.

They begin with N(0, σ_max²), and yield x̄; the last is the image, where σ = 0 and x̄ = x.

Systems: probability-flow-ode
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from descend.sampling.diffusion.denoiser import Denoiser, Noise
from descend.sampling.diffusion.grid import Grid


def slope(denoise: Denoiser, x: Tensor, t: float, sigma: float) -> Tensor:
    """dx̄ / dσ = (x̄ − x_0) / σ; the network sees x = x̄ / √(1 + σ²)."""
    abar = 1 / (1 + sigma**2)
    return (x - denoise(x * abar**0.5, t, abar).x0) / sigma


def sample_euler(denoise: Denoiser, grid: Grid, x: Tensor, noise: Noise) -> Iterator[Tensor]:
    """x̄ after each step."""
    levels = grid.sigma.tolist()
    for i, t in enumerate(grid.t.tolist()):
        x = x + (levels[i + 1] - levels[i]) * slope(denoise, x, t, levels[i])
        yield x


def sample_euler_ancestral(denoise: Denoiser, grid: Grid, x: Tensor, noise: Noise) -> Iterator[Tensor]:
    """x̄ after each step: further down than asked, and up again with fresh noise."""
    levels = grid.sigma.tolist()
    for i, t in enumerate(grid.t.tolist()):
        here, to = levels[i], levels[i + 1]
        up = (to**2 * (here**2 - to**2) / here**2) ** 0.5
        down = (to**2 - up**2) ** 0.5
        x = x + (down - here) * slope(denoise, x, t, here)
        if to:
            x = x + up * noise()
        yield x


def sample_heun(denoise: Denoiser, grid: Grid, x: Tensor, noise: Noise) -> Iterator[Tensor]:
    """x̄ after each step."""
    levels, times = grid.sigma.tolist(), grid.t.tolist()
    for i, t in enumerate(times):
        here, to = levels[i], levels[i + 1]
        first = slope(denoise, x, t, here)
        ahead = x + (to - here) * first
        if to and i + 1 < len(times):
            ahead = x + (to - here) * (first + slope(denoise, ahead, times[i + 1], to)) / 2
        x = ahead
        yield x
