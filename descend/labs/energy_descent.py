"""Inference by descent on a trained energy: where it ends, and how many answers one x has.

    data      a ring in the plane, radius 1, width 0.1: for one x there are two y
    energy    a network, trained by noise contrast (`losses/energy.py`)
    descent   both coordinates from anywhere; then y alone with x = 0.6 fixed, whose answers are ±0.8

Measured: the distance of the end points from the ring, whether any step raised the energy, and the answers found.

Systems: energy-function-inference
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions import Normal

from descend.engine.minimise import minimise
from descend.losses.energy import noise_contrast, noise_contrastive_loss
from descend.models.energy_network import EnergyNetworkConfig, NormalisedEnergyNetwork
from descend.ops.energy.inference import descend_energy, find_minima
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIM = "Descent on a trained energy ends at the data from anywhere, and finds both answers where there are two."
GIVEN, WIDTH, BATCH = 0.6, 0.1, 256
BUDGET = 3.0
PRICE = 150  # training steps that a second of one core buys
LEAST = 300


def draw_ring(n: int, random: torch.Generator) -> Tensor:
    angle = 2 * math.pi * torch.rand(n, generator=random)
    ring = torch.stack([angle.cos(), angle.sin()], 1)
    return ring + WIDTH * torch.randn(n, 2, generator=random)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Train, then descend."""
    steps = max(2, round(PRICE * budget))
    torch.manual_seed(seed)
    model = NormalisedEnergyNetwork(EnergyNetworkConfig(width=48, depth=2))
    random, noise = torch.Generator().manual_seed(seed), Normal(0.0, 1.0)

    def logits(x: Tensor) -> Tensor:
        return noise_contrast(-model(x), noise.log_prob(x).sum(1))

    def loss() -> Tensor:
        other = torch.randn(BATCH, 2, generator=random)
        return noise_contrastive_loss(logits(draw_ring(BATCH, random)), logits(other))

    minimise(model, loss, steps, Adam(1e-2), Linear())
    starts = 3 * torch.rand(200, 2, generator=random) - 1.5
    path = descend_energy(model, starts, 0.004, 250)
    with torch.no_grad():
        energies = torch.stack([model(y) for y in path])

    def given_x(y: Tensor) -> Tensor:
        return model(torch.cat([torch.full_like(y, GIVEN), y], 1))

    answers = find_minima(given_x, torch.linspace(-1.4, 1.4, 15)[:, None], 0.004, 400, apart=0.3)[:, 0]
    away = (path[-1].norm(dim=1) - 1).abs()
    return {
        "steps": steps,
        "far_before": float((starts.norm(dim=1) - 1).abs().mean()),
        "far_after": float(away.mean()),
        "near": float((away < 2 * WIDTH).float().mean()),
        "largest_rise": float(energies.diff(dim=0).max()),
        "answers": sorted(answers.tolist()),
        "paths": path[::25, :40].tolist(),
    }


def verdict(numbers: dict[str, Any]) -> str:
    """Supported if 95% of the descents end within two widths of the ring, no step raised the energy by more than
    rounding, and the answers for x = 0.6 are two, within 0.15 of ±0.8."""
    if numbers["steps"] < LEAST:
        return "open"
    answers = numbers["answers"]
    both = len(answers) == 2 and abs(answers[0] + 0.8) < 0.15 and abs(answers[1] - 0.8) < 0.15
    good = numbers["near"] >= 0.95 and numbers["largest_rise"] < 1e-4 and both
    return "supported" if good else "refuted"


def figure(numbers: dict[str, Any]) -> Figure:
    """Forty descents."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(4.5, 4.5), layout="constrained")
    axes = fig.subplots()
    paths = torch.tensor(numbers["paths"])
    for i in range(paths.shape[1]):
        axes.plot(paths[:, i, 0], paths[:, i, 1], color="grey", linewidth=0.7)
    axes.plot(paths[-1, :, 0], paths[-1, :, 1], "o", markersize=3)
    axes.plot([GIVEN] * len(numbers["answers"]), numbers["answers"], "x", color="black")
    axes.set_aspect("equal")
    return fig
