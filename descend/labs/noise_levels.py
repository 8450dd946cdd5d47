"""Scores at several noise levels: how well each is learned, on points and on images, and why one is not enough.

    mixture   a rare and a frequent Gaussian in the plane, far apart: smoothed by σ, its score is known exactly
    digits    8 × 8 images: what is learned is the score of the smoothed training set, a weighted mean shift over σ²
    error     E ‖s − s_true‖² / E ‖s_true‖² at each level, over points of that level

A network with the smallest level alone is asked at points of the largest, where it has seen no data.

Systems: multi-scale-score-model
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.images.digits import load_digits_split
from descend.data.toys.mixture import Mixture
from descend.engine.minimise import minimise
from descend.losses.score_matching import denoising_by_noise
from descend.models.score_network import ScoreNetwork, ScoreNetworkConfig
from descend.ops.energy.score import smoothed_score
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIM = (
    "One network learns the scores of all noise levels; with the least noisy level alone it fails far from the data."
)
MIXTURE = Mixture(torch.tensor([0.2, 0.8]), torch.tensor([[-3.0, -3.0], [3.0, 3.0]]), torch.ones(2))
BATCH = 256
BUDGET = 8.0
PRICE = 100  # training steps on the mixture that a second of one core buys; half as many for images and one level
LEAST = 500
PLANE = ScoreNetworkConfig(width=64, depth=3, levels=6, first=8.0, last=0.5, spread=3.0)
IMAGES = ScoreNetworkConfig(inputs=64, width=192, depth=3, levels=5, first=4.0, last=0.7, spread=1.0)


def train_network(config: ScoreNetworkConfig, draw: Callable[[torch.Generator], Tensor], steps: int, seed: int) -> Any:
    """Denoising at a random level of each point."""
    torch.manual_seed(seed)
    model, random = ScoreNetwork(config), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        x, level = draw(random), torch.randint(config.levels, (BATCH,), generator=random)
        noise = torch.randn(x.shape, generator=random)
        return denoising_by_noise(model(x + model.sigma(level) * noise, level), noise, 1.0).mean()

    minimise(model, loss, steps, Adam(4e-3), Linear())
    return model.eval()


def relative(found: Tensor, true: Tensor) -> float:
    """E ‖s − s_true‖² / E ‖s_true‖²"""
    return float((found - true).square().sum(1).mean() / true.square().sum(1).mean())


def smooth(sigma: float) -> Mixture:
    return Mixture(MIXTURE.pi, MIXTURE.mu, (MIXTURE.sigma**2 + sigma**2).sqrt())


@torch.no_grad()
def measure(seed: int, budget: float) -> dict[str, Any]:
    """The errors of every level."""
    steps = max(2, round(PRICE * budget))
    random = torch.Generator().manual_seed(seed + 1000)
    digits = load_digits_split().train.x.flatten(1)
    digits = (digits - digits.mean()) / digits.std()
    with torch.enable_grad():
        plane = train_network(PLANE, lambda g: MIXTURE.sample(BATCH, g)[0], steps, seed)
        one = ScoreNetworkConfig(width=64, depth=3, levels=1, first=PLANE.last, last=PLANE.last, spread=3.0)
        single = train_network(one, lambda g: MIXTURE.sample(BATCH, g)[0], steps // 2, seed)
        take = lambda g: digits[torch.randint(len(digits), (BATCH,), generator=g)]
        images = train_network(IMAGES, take, steps // 2, seed)
    errors, image_errors = [], []
    for level, sigma in enumerate(plane.sizes):
        x = smooth(sigma).sample(2000, random)[0]
        errors.append(relative(plane.score(x, level), smooth(sigma).score(x)))
    for level, sigma in enumerate(images.sizes):
        x = digits + sigma * torch.randn(digits.shape, generator=random)
        image_errors.append(relative(images.score(x, level), smoothed_score(x, digits, sigma)))
    far = smooth(PLANE.first).sample(2000, random)[0]
    last = smooth(PLANE.last)
    near = last.sample(2000, random)[0]
    return {
        "sigma": list(plane.sizes),
        "error": errors,
        "image_sigma": list(images.sizes),
        "image_error": image_errors,
        "single_near": relative(single.score(near, 0), last.score(near)),
        "single_far": relative(single.score(far, 0), last.score(far)),
        "steps": steps,
    }


def verdict(numbers: dict[str, Any]) -> str:
    """Supported if the error is below 10% at every level of the mixture and below 35% at every level of the images, and
    if the single level is right near the data (below 10%) and, at points of the largest level, twenty times as wrong as
    the network that knows that level."""
    if numbers["steps"] < LEAST:
        return "open"
    learned = max(numbers["error"]) < 0.1 and max(numbers["image_error"]) < 0.35
    fails = numbers["single_near"] < 0.1 and numbers["single_far"] > 20 * numbers["error"][0]
    return "supported" if learned and fails else "refuted"


def figure(numbers: dict[str, Any]) -> Figure:
    """Errors by level."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(5.5, 3.4), layout="constrained")
    axes = fig.subplots()
    axes.loglog(numbers["sigma"], numbers["error"], marker="o", label="mixture")
    axes.loglog(numbers["image_sigma"], numbers["image_error"], marker="o", label="digits")
    axes.axhline(numbers["single_far"], color="grey", linestyle="--", label="one small level, asked far away")
    axes.set_xlabel("σ")
    axes.set_ylabel("relative squared error of the score")
    axes.legend()
    return fig
