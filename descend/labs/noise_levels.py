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
from descend.labs._evidence import Above, Below
from descend.losses.score_matching import denoising_by_noise
from descend.models.score_network import ScoreNetwork, ScoreNetworkConfig
from descend.ops.energy.score import smoothed_score
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.154",)
PRINTED = "Scores are inaccurate at low density; one network for several noise levels is the remedy."
CLAIM = (
    "One network learns the scores of all noise levels; with the least noisy level alone it fails far from the data."
)
PREDICTIONS = (
    Below(
        "error on the mixture",
        0.1,
        "The worst level's squared error as a share of the score's own square.",
    ),
    Below("error on images", 0.35, "The same on images."),
    Below("single level near", 0.1, "The error of the network with one level near the data."),
    Above(
        "single level far",
        20,
        "Its error at points of the largest level over that of the network that knows the level.",
    ),
)
SCOPE = "A mixture of the plane with exact scores, and 8×8 digits."
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


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "error on the mixture": max(numbers["error"]),
        "error on images": max(numbers["image_error"]),
        "single level near": numbers["single_near"],
        "single level far": numbers["single_far"] / numbers["error"][0],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


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
