"""The samplers by name, and how a plan is carried out.

    ddpm               ancestral, with fresh noise in every step
    ddim               deterministic (or with η), any number of steps
    plms               linear multistep on ε (Stable Diffusion's first default)
    dpm++, dpm++sde    DPM-Solver++ 2M of the probability flow or of the reverse SDE: good in 20 steps
    unipc              predictor and corrector of higher order
    euler, heun        in the scaled space, of first and second order; euler-ancestral with fresh noise

Systems: ddpm-sampler, ddim
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from descend.ops.diffusion.plan import Plan
from descend.sampling.diffusion.ancestral import sample_ddpm
from descend.sampling.diffusion.denoiser import Denoiser, Noise, Predict
from descend.sampling.diffusion.grid import SCALED, Grid, make_grid
from descend.sampling.diffusion.implicit import sample_ddim, sample_plms
from descend.sampling.diffusion.multistep import sample_dpm, sample_dpm_sde, sample_unipc
from descend.sampling.diffusion.scaled import sample_euler, sample_euler_ancestral, sample_heun


def walk(predict: Predict, x: Tensor, plan: Plan, noise: Noise, steps: int = 0) -> Iterator[Tensor]:
    """From noise x ~ N(0, I) to an image, by the plan: what is there after each step; the last is the sample.

    `euler`, `euler-ancestral` and `heun` yield x / √ᾱ, all others x.
    """
    return walk_grid(Denoiser(predict, plan.predicts, plan.clip), make_grid(plan, steps), x, plan, noise)


def walk_grid(denoise: Denoiser, grid: Grid, x: Tensor, plan: Plan, noise: Noise) -> Iterator[Tensor]:
    """The same along a grid of one's own."""
    method = plan.method
    if method == "ddpm":
        return sample_ddpm(denoise, grid, x, noise, plan.variance)
    if method == "ddim":
        return sample_ddim(denoise, grid, x, noise, plan.eta)
    if method == "unipc":
        return sample_unipc(denoise, grid, x, noise, plan.order)
    if method in SCALED:
        x = x * start_scale(grid, plan)
    chosen = {
        "plms": sample_plms,
        "dpm++": sample_dpm,
        "dpm++sde": sample_dpm_sde,
        "euler": sample_euler,
        "euler-ancestral": sample_euler_ancestral,
        "heun": sample_heun,
    }[method]
    return chosen(denoise, grid, x, noise)


def start_scale(grid: Grid, plan: Plan) -> float:
    """What the first noise is multiplied with in the scaled space: √(1 + σ²) = 1 / √ᾱ where an image is still seen."""
    sigma = grid.sigma[0].item()
    return float((1 + sigma**2) ** 0.5) if plan.spacing == "leading" else sigma


@torch.no_grad()
def draw(predict: Predict, x: Tensor, plan: Plan, noise: Noise, steps: int = 0) -> Tensor:
    """The sample that noise x leads to."""
    for found in walk(predict, x, plan, noise, steps):
        x = found
    return x
