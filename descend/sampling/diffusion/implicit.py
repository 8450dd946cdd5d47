"""DDIM: the same network and the same marginals without (or with less) fresh noise, in as few steps as one likes.

    x_s = √ᾱ_s x̂_0 + √(1 − ᾱ_s − σ²) ε̂ + σ z        s < t, any sub-sequence of the times
    σ = η √((1 − ᾱ_s) / (1 − ᾱ_t)) √(1 − ᾱ_t / ᾱ_s)        η = 0: deterministic, η = 1: DDPM with β̃

With η = 0 the steps can be taken the other way: `invert` encodes an image as the noise that leads to it.
η is in the original; DLN-C.133 names DDIM only.

Systems: ddim
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from descend.ops.diffusion.kernels import posterior_variance
from descend.sampling.diffusion.denoiser import Denoiser, Noise
from descend.sampling.diffusion.grid import Grid


def step_ddim(x0: Tensor, eps: Tensor, to: float) -> Tensor:
    """√ᾱ_s x̂_0 + √(1 − ᾱ_s) ε̂: the level of noise is changed, image and noise stay."""
    return to**0.5 * x0 + (1 - to) ** 0.5 * eps


def sample_ddim(denoise: Denoiser, grid: Grid, x: Tensor, noise: Noise, eta: float = 0.0) -> Iterator[Tensor]:
    """x_s after each step."""
    for i, t in enumerate(grid.t.tolist()):
        abar, to = grid.abar[i].item(), grid.abar[i + 1].item()
        x0, eps = denoise(x, t, abar)
        if eta == 0:
            x = step_ddim(x0, eps, to)
        else:
            variance = eta**2 * float(posterior_variance(abar, to))
            x = to**0.5 * x0 + (1 - to - variance) ** 0.5 * eps + variance**0.5 * noise()
        yield x


def invert(denoise: Denoiser, grid: Grid, x: Tensor) -> Iterator[Tensor]:
    """From an image to its noise, up the grid: each step takes the noise seen at its lower end.

    The first step begins at the image itself, where the network is told the grid's last time. What it makes of it,
    `sample_ddim` turns back into the image, the better the more steps there are.
    """
    levels, times = grid.abar.flip(0), grid.t.flip(0)
    for i in range(len(grid)):
        here = levels[i].item()
        t = times[max(i - 1, 0)].item()
        x0, eps = denoise(x, t, levels[max(i, 1)].item() if here == 1 else here)
        if here == 1:
            x0 = x
        x = step_ddim(x0, eps, levels[i + 1].item())
        yield x


def sample_plms(denoise: Denoiser, grid: Grid, x: Tensor, noise: Noise) -> Iterator[Tensor]:
    """Pseudo linear multistep (PNDM without its Runge-Kutta start): DDIM steps with ε extrapolated from the last four.

        ε' = (55 ε_t − 59 ε_{t+1} + 37 ε_{t+2} − 9 ε_{t+3}) / 24       fewer terms at first; the first step is Heun's

    One call more than steps. The network must predict ε or v; x_0 is not used.
    """
    past: list[Tensor] = []
    times = grid.t.tolist()
    for i, t in enumerate(times):
        abar, to = grid.abar[i].item(), grid.abar[i + 1].item()
        past.append(denoise(x, t, abar).eps)
        if i == 0:
            guess = transfer(x, past[0], abar, to)
            if len(times) > 1:
                ahead = denoise(guess, times[1], to).eps
                guess = transfer(x, (past[0] + ahead) / 2, abar, to)
            x = guess
        else:
            x = transfer(x, extrapolate(past), abar, to)
        past = past[-3:]
        yield x


def transfer(x: Tensor, eps: Tensor, abar: float, to: float) -> Tensor:
    """The DDIM step with this noise."""
    return step_ddim((x - (1 - abar) ** 0.5 * eps) / abar**0.5, eps, to)


def extrapolate(past: list[Tensor]) -> Tensor:
    """Adams and Bashforth's combination of the last ε."""
    weights = {1: (1.0,), 2: (1.5, -0.5), 3: (23 / 12, -16 / 12, 5 / 12), 4: (55 / 24, -59 / 24, 37 / 24, -9 / 24)}
    chosen = weights[len(past)]
    first, *others = (w * e for w, e in zip(chosen, reversed(past), strict=True))
    return sum(others, first)
