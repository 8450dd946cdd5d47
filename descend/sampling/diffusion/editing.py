"""Images changed by diffusion: noise is added once, up to a strength, and then removed along the plan.

    image-to-image   x_t = √ᾱ_t x + √(1 − ᾱ_t) ε,   t = round(strength · n) of n steps,   then from t down to the image
                     strength 0: nothing is done;   strength 1: pure noise, whatever the image
    mask-blend       after every step  x ← m ∘ x + (1 − m) ∘ (√ᾱ_s x_0 + √(1 − ᾱ_s) ε),   in the end x_0 itself

x is an image or the latent of one; the mask m is 1 where something new is wanted. Blending needs no training: what is
not masked follows the path that noise would have taken from the known part, so the rest is drawn to fit; where m = 0
the result is x_0 to the bit. ε is one draw for all levels, as in Stable Diffusion's pipelines. At strength 1 they still
add noise to the image, of which a factor of 0.006 is left (linear schedule); this begins with pure noise.
An empty mask, or strength 0, returns the input.

Systems: image-to-image, inpainting
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.plan import Plan
from descend.sampling.diffusion.denoiser import Denoiser, Noise, Predict
from descend.sampling.diffusion.grid import SCALED, Grid, make_grid
from descend.sampling.diffusion.samplers import start_scale, walk_grid


def count_steps(strength: float, steps: int) -> int:
    """Of so many steps, those that are taken: proportional to the strength."""
    if not 0 <= strength <= 1:
        raise Mistake(f"--strength {strength:g}: from 0 (the image as it is) to 1 (a new one)")
    return round(strength * steps)


def cut_grid(grid: Grid, strength: float) -> Grid:
    """The last part of a grid, from the noise level of the strength to the image."""
    first = len(grid) - count_steps(strength, len(grid))
    return Grid(grid.t[first:], grid.abar[first:])


@torch.no_grad()
def revise(
    predict: Predict,
    x: Tensor,
    plan: Plan,
    noise: Noise,
    steps: int = 0,
    strength: float = 1.0,
    mask: Tensor | None = None,
) -> Tensor:
    """x (b, c, h, w) with noise up to the strength, denoised; with a mask (b or 1, 1, h, w) only where it is 1."""
    last = x
    for found in walk_back(predict, x, plan, noise, steps, strength, mask):
        last = found
    return last


def walk_back(
    predict: Predict, x: Tensor, plan: Plan, noise: Noise, steps: int, strength: float, mask: Tensor | None
) -> Iterator[Tensor]:
    """What is there after each step."""
    grid = cut_grid(make_grid(plan, steps), strength)
    if not len(grid) or (mask is not None and not mask.any()):
        return
    eps, scaled = noise(), plan.method in SCALED
    start = eps
    if strength < 1:
        start = at_level(x, eps, grid.abar[0].item(), scaled)
        start = start / start_scale(grid, plan) if scaled else start
    walk = walk_grid(Denoiser(predict, plan.predicts, plan.clip), grid, start, plan, noise)
    for i, found in enumerate(walk):
        if mask is not None:
            last = i == len(grid) - 1
            known = x if last else at_level(x, eps, grid.abar[i + 1].item(), scaled)
            found.copy_(torch.where(mask > 0, found, known))  # the sampler goes on from what is written here
        yield found


def at_level(x: Tensor, eps: Tensor, abar: float, scaled: bool) -> Tensor:
    """√ᾱ x + √(1 − ᾱ) ε; in the scaled space x + σ ε."""
    found = add_noise(x, eps, abar)
    return found / abar**0.5 if scaled else found


def lay_beside(mask: Tensor, masked: Tensor) -> Tensor:
    """What an inpainting network takes beside the latent: the mask in the latent's size and the masked image's latent.

    Trained with such channels it knows what is around; (b, 1, H, W), (b, c, h, w) -> (b, 1 + c, h, w).
    """
    small = F.interpolate(mask, size=masked.shape[-2:], mode="nearest")
    return torch.cat([small.expand(len(masked), -1, -1, -1), masked], dim=1)


def lay_depth(depth: Tensor, size: tuple[int, int]) -> Tensor:
    """A depth map (b, 1, H, W), any units, as a channel of −1..1 in the latent's size."""
    small = F.interpolate(depth, size=size, mode="bicubic", align_corners=False)
    least, most = small.amin((1, 2, 3), keepdim=True), small.amax((1, 2, 3), keepdim=True)
    return 2 * (small - least) / (most - least).clamp(min=1e-12) - 1
