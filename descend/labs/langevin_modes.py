"""Langevin dynamics against gradient ascent on a learned score: what happens inside a mode.

    data     two Gaussians at (±2, 0) of width 0.6
    score    a network, by denoising score matching with σ = 0.2: the score of Gaussians of width √(0.6² + 0.2²)
    ascent   x + η s(x): every point of a basin ends at the same place
    Langevin x + η s(x) + √(2η) ε: the points of a mode keep its width

Both start at N(0, I), the centre between the modes. Measured: the spread of the points of each mode.

Systems: langevin-sampler
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.toys.mixture import Mixture
from descend.engine.minimise import minimise
from descend.labs._evidence import Below, Within
from descend.losses.score_matching import denoising_by_noise
from descend.models.score_network import ScoreNetwork, ScoreNetworkConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.sampling.langevin import ascend_score, langevin_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.152",)
PRINTED = "Pure ascent x + η s collapses to the modes; the noise √(2η) ε restores diversity."
CLAIM = "Gradient ascent on a score collapses each mode to a point; with Langevin's noise every mode keeps its spread."
PREDICTIONS = (
    Below(
        "spread after ascent",
        0.2,
        "The larger spread of a mode after ascent, as a share of the true one.",
    ),
    Within(
        "spread after Langevin",
        0.8,
        1.2,
        "The spread that is farther from the true one after Langevin, as a share of it.",
    ),
    Within(
        "share of a mode",
        0.2,
        0.8,
        "The share of points in the first mode that is farther from one half: both modes are there.",
    ),
)
SCOPE = "Two Gaussians of the plane and a learned score."
PLACE, WIDTH, SIGMA, ETA, STEPS, POINTS, BATCH = 2.0, 0.6, 0.2, 0.02, 250, 1000, 256
TRUE = math.sqrt(WIDTH**2 + SIGMA**2)
BUDGET = 3.0
PRICE = 200  # training steps that a second of one core buys
LEAST = 300


def train_score(steps: int, seed: int) -> ScoreNetwork:
    """A network with one noise level."""
    torch.manual_seed(seed)
    model = ScoreNetwork(ScoreNetworkConfig(width=48, depth=2, levels=1, first=SIGMA, last=SIGMA, spread=PLACE))
    mixture = Mixture(torch.tensor([0.5, 0.5]), torch.tensor([[-PLACE, 0.0], [PLACE, 0.0]]), torch.full((2,), WIDTH))
    random, level = torch.Generator().manual_seed(seed), torch.zeros(BATCH, dtype=torch.long)

    def loss() -> Tensor:
        x, noise = mixture.sample(BATCH, random)[0], torch.randn(BATCH, 2, generator=random)
        return denoising_by_noise(model(x + SIGMA * noise, level), noise, 1.0).mean()

    minimise(model, loss, steps, Adam(5e-3), Linear())
    return model


@torch.no_grad()
def measure(seed: int, budget: float) -> dict[str, Any]:
    """Spread of each mode by both samplers, and three trajectories of each from the centre."""
    steps = max(2, round(PRICE * budget))
    with torch.enable_grad():
        model = train_score(steps, seed)
    random = torch.Generator().manual_seed(seed)
    start, noises = torch.randn(POINTS, 2, generator=random), torch.randn(STEPS, POINTS, 2, generator=random)
    start[:3] = 0
    paths = {
        "ascent": ascend_score(lambda x: model.score(x, 0), start, ETA, STEPS),
        "langevin": langevin_path(lambda x: model.score(x, 0), start, noises, ETA),
    }
    found: dict[str, Any] = {"steps": steps, "true": TRUE}
    for name, path in paths.items():
        last = path[-1, 3:]
        sides = [last[last[:, 0] < 0], last[last[:, 0] >= 0]]
        found[f"{name}_spread"] = [float(side.std(0).mean()) for side in sides]
        found[f"{name}_share"] = len(sides[0]) / len(last)
        found[f"{name}_paths"] = path[::10, :3].tolist()
    return found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    spreads = [spread / numbers["true"] for spread in numbers["langevin_spread"]]
    shares = [numbers[f"{name}_share"] for name in ("ascent", "langevin")]
    return {
        "spread after ascent": max(numbers["ascent_spread"]) / numbers["true"],
        "spread after Langevin": max(spreads, key=lambda spread: abs(spread - 1)),
        "share of a mode": max(shares, key=lambda share: abs(share - 0.5)),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Three trajectories of each, from the centre."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.2), layout="constrained")
    for axes, name in zip(fig.subplots(1, 2), ("ascent", "langevin"), strict=True):
        paths = torch.tensor(numbers[f"{name}_paths"])
        for i in range(paths.shape[1]):
            axes.plot(paths[:, i, 0], paths[:, i, 1], marker=".", markersize=3)
        axes.plot([-PLACE, PLACE], [0, 0], "x", color="black")
        axes.set_title(name)
        axes.set_xlim(-4, 4)
        axes.set_ylim(-2.5, 2.5)
    return fig
