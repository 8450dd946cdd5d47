"""RealNVP on two moons, layer by layer: how four stretches and shifts make two moons of a Gaussian.

    two double layers: horizontal, vertical, horizontal, vertical        x_B = e^{s(x_A)} ∘ z_B + b(x_A)

Trained by maximum likelihood on fresh points. Measured on points that were not trained on: the negative log-likelihood
of the flow, of the Gaussian that fits best, and of the true density, which no model can beat; and the share of the
flow's samples that are within three widths of the noise of a moon. The figure shows the Gaussian, the four stages and
the data, as DLN's does.

Systems: realnvp
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.toys.densities import Moons, arcs, entropy
from descend.engine.minimise import minimise
from descend.labs._evidence import Above, AtLeast
from descend.models.realnvp import RealNVP, RealNVPConfig
from descend.nn.flow.bijection import standard_normal
from descend.nn.flow.linear import fit_linear
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.77",)
PRINTED = "A 2-D Gaussian becomes two moons with two double layers (vertical, horizontal, vertical, horizontal)."
CLAIM = (
    "Four affine coupling layers, two for each axis, turn a Gaussian into two moons: held-out points are far likelier"
    " than under the best Gaussian, never likelier than under the true density, and most samples are near the moons."
)
PREDICTIONS = (
    AtLeast(
        "over the truth",
        0,
        "Negative log-likelihood of the flow less that of the true density: no model beats it.",
    ),
    Above(
        "ahead of the Gaussian",
        0.4,
        "Nats by which the flow is ahead of the best Gaussian; refuted where it is not ahead at all.",
        refuted=0,
    ),
    Above("near a moon", 0.85, "The share of samples within three widths of the noise of a moon.", refuted=0),
)
SCOPE = "Two moons of the plane with noise 0.1, small networks."
NOISE, BATCH, HELD = 0.1, 256, 4000
BUDGET = 8.0
PRICE = 120  # steps that a second of one core buys


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Negative log-likelihoods on held-out points, the share of samples near a moon, and the stages."""
    moons, random = Moons(NOISE), generator(seed)
    torch.manual_seed(seed)
    flow = RealNVP(RealNVPConfig(couplings=4, width=64, depth=2))
    steps = max(200, round(PRICE * budget))
    minimise(flow, lambda: -flow.log_prob(moons.sample(BATCH, random)).mean(), steps, Adam(5e-3), Cosine(), clip=1.0)
    held, noise = moons.sample(HELD, generator(seed, 1)), torch.randn(HELD, 2, generator=generator(seed, 2))
    gaussian = fit_linear(moons.sample(HELD, generator(seed, 3)))
    with torch.no_grad():
        z, log_det = gaussian.inverse(held)
        stages = flow.stages(noise)
        return {
            "steps": steps,
            "flow": -flow.log_prob(held).mean().item(),
            "gaussian": -(standard_normal(z) + log_det).mean().item(),
            "exact": -moons.log_prob(held).mean().item(),
            "entropy": entropy(moons, 150),
            "near": share_near(stages[-1]),
            "near_gaussian": share_near(gaussian(noise)[0]),
            "stages": [stage[:1000].tolist() for stage in stages],
            "data": held[:1000].tolist(),
        }


def share_near(x: Tensor) -> float:
    """The share of points (n, 2) within three widths of the noise of the nearest arc."""
    line = torch.cat(arcs(torch.linspace(0, torch.pi, 200)))
    return (torch.cdist(x, line).amin(1) < 3 * NOISE).double().mean().item()


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "over the truth": numbers["flow"] - numbers["exact"],
        "ahead of the Gaussian": numbers["gaussian"] - numbers["flow"],
        "near a moon": numbers["near"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Six panels: the Gaussian, the four stages, the data."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(13, 2.6), layout="constrained")
    clouds = [*numbers["stages"], numbers["data"]]
    titles = ["Gaussian", "horizontal", "vertical", "horizontal", "vertical", "data"]
    for axes, cloud, title in zip(fig.subplots(1, 6), clouds, titles, strict=True):
        axes.scatter(*zip(*cloud, strict=True), s=2, color="#2b6cd8" if title != "data" else "0.4", alpha=0.6)
        axes.set_title(title, fontsize=10, loc="left", fontweight="bold")
        axes.set_aspect("equal", "datalim")
        axes.spines[["top", "right"]].set_visible(False)
    return fig
