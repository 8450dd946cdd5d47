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
from descend.labs._evidence import AtLeast, AtMost, Below
from descend.losses.energy import noise_contrast, noise_contrastive_loss
from descend.models.energy_network import EnergyNetworkConfig, NormalisedEnergyNetwork
from descend.ops.energy.inference import descend_energy, find_minima
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.90", "DLN-C.91")
PRINTED = (
    "Inference starts anywhere and descends the energy until it is low; several minimisers are"
    " possible, so that outputs may be multi-valued."
)
CLAIM = "Descent on a trained energy ends at the data from anywhere, and finds both answers where there are two."
PREDICTIONS = (
    AtLeast("near the ring", 0.95, "The share of descents that end within two widths of the ring."),
    Below("largest rise", 1e-4, "The most by which a step raised the energy."),
    AtMost(
        "answers off",
        0.15,
        "The largest distance of the two answers for x = 0.6 from ±0.8; without two answers it is not"
        " measured, and counted as 1.",
    ),
)
SCOPE = "A ring in the plane and one small network."
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


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    found = numbers["answers"]
    off = max(abs(found[0] + 0.8), abs(found[1] - 0.8)) if len(found) == 2 else 1.0
    return {"near the ring": numbers["near"], "largest rise": numbers["largest_rise"], "answers off": off}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


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
