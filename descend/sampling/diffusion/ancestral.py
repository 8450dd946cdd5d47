"""DDPM's ancestral sampler: from x_T ~ N(0, I) down the learned chain.

    x_{t−1} = (x_t − β_t / √(1 − ᾱ_t) ε_θ(x_t, t)) / √α_t + σ_t z,   z ~ N(0, I), none at t = 1
    σ_t² = β_t or β̃_t

Only a share β_t / √(1 − ᾱ_t) of the predicted noise goes in a step. In terms of x̂_0 the mean is the posterior's μ̃_t,
which is the form here: a predicted image can be kept in its range first, and a step may jump (α = ᾱ_t / ᾱ_s).
Erratum: S940-DLD.141 adds noise at t = 1, too; DLN-C.131 and the paper do not, nor does this.

Systems: ddpm-sampler, ddpm
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from descend.ops.diffusion.kernels import posterior, reverse_variance
from descend.sampling.diffusion.denoiser import Denoiser, Noise
from descend.sampling.diffusion.grid import Grid


def sample_ddpm(
    denoise: Denoiser, grid: Grid, x: Tensor, noise: Noise, variance: str = "posterior"
) -> Iterator[Tensor]:
    """x_{t−1} after each step; `variance` is "posterior" (β̃) or "beta"."""
    for i, t in enumerate(grid.t.tolist()):
        abar, before = grid.abar[i].item(), grid.abar[i + 1].item()
        x = posterior(denoise(x, t, abar).x0, x, abar, before).mean
        if i + 1 < len(grid):
            x = x + float(reverse_variance(abar, before, variance)) ** 0.5 * noise()
        yield x
