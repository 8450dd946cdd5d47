"""Autoencoders as energies: an autoencoder, a denoising and a variational one tell data from what is no data.

    data         a curve in the plane, (t, sin 2t) with noise 0.05
    autoencoder  code of one number; E = ‖x − Dec(Enc(x))‖²
    denoising    the same, code of 32 numbers, trained to rebuild x from x + 0.3 ε
    variational  code of one number, q(z | x) Gaussian; E = −ELBO

Measured: how often a point of the curve has a lower energy than a point of the box around it (chance: 0.5), and the
energy map.

Systems: autoencoders-as-ebm
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.toys.densities import Box, cover
from descend.engine.minimise import minimise
from descend.labs._evidence import Above, AtLeast
from descend.ops.energy.gibbs import Energy
from descend.ops.energy.reconstruction import bound_energy, reconstruction_energy
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.118",)
PRINTED = (
    "Denoising autoencoders, VAEs and others are energy-based models: the energy is the"
    " reconstruction error, or the negative ELBO."
)
CLAIM = "Reconstruction errors and negative bounds are energies: lower at the data than elsewhere, for all three kinds."
PREDICTIONS = (
    AtLeast(
        "data below",
        0.8,
        "Of pairs of a data point and another, the share in which the data point is lower, worst of three"
        " kinds; 0.5 is chance.",
    ),
    Above(
        "gap of medians",
        0,
        "The smallest difference of the median energies, elsewhere less data.",
    ),
)
SCOPE = "A curve in the plane, small networks; a high-dimensional energy may have other low places."
KINDS = ("autoencoder", "denoising", "variational")
WIDTH, BATCH, NOISE, DECODER = 48, 256, 0.3, 0.1
BOX: Box = (-2.2, 2.2, -1.7, 1.7)
CELLS = 60
BUDGET = 5.0
PRICE = 120  # steps of each of the three trainings that a second of one core buys
LEAST = 300


def make_network(inputs: int, outputs: int) -> nn.Sequential:
    middle = (nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU())
    return nn.Sequential(nn.Linear(inputs, WIDTH), *middle, nn.Linear(WIDTH, outputs))


def draw_curve(n: int, random: torch.Generator) -> Tensor:
    t = 4 * torch.rand(n, generator=random) - 2
    return torch.stack([t, (2 * t).sin()], 1) + 0.05 * torch.randn(n, 2, generator=random)


def elbo(encode: nn.Module, decode: nn.Module, x: Tensor, noise: Tensor) -> Tensor:
    """One sample of the bound, of each point."""
    mean, log_std = encode(x).chunk(2, 1)
    z = mean + log_std.exp() * noise
    fit = -(x - decode(z)).square().sum(1) / (2 * DECODER**2) - math.log(2 * math.pi * DECODER**2)
    kl = (mean.square() + (2 * log_std).exp() - 1 - 2 * log_std).sum(1) / 2
    return fit - kl


def train_energy(kind: str, steps: int, seed: int) -> Energy:
    """The energy of a trained autoencoder of this kind."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    code = 32 if kind == "denoising" else 1
    encode, decode = make_network(2, 2 * code if kind == "variational" else code), make_network(code, 2)
    loss: Callable[[], Tensor]
    if kind == "variational":
        loss = lambda: -elbo(encode, decode, draw_curve(BATCH, random), torch.randn(BATCH, 1, generator=random)).mean()
    else:
        size = NOISE if kind == "denoising" else 0.0

        def loss() -> Tensor:
            x = draw_curve(BATCH, random)
            return (decode(encode(x + size * torch.randn(x.shape, generator=random))) - x).square().sum(1).mean()

    minimise(nn.ModuleList([encode, decode]), loss, steps, Adam(5e-3), Linear())
    if kind == "variational":
        at_mean = lambda x: elbo(encode, decode, x, torch.zeros(len(x), 1))
        return bound_energy(at_mean)
    return reconstruction_energy(lambda x: decode(encode(x)))


@torch.no_grad()
def measure(seed: int, budget: float) -> dict[str, Any]:
    """How often data are below other points, and the maps."""
    steps = max(2, round(PRICE * budget))
    random = torch.Generator().manual_seed(seed + 1000)
    data = draw_curve(1000, random)
    left, right, bottom, top = BOX
    size, corner = torch.tensor([right - left, top - bottom]), torch.tensor([left, bottom])
    other = corner + size * torch.rand(1000, 2, generator=random)
    found: dict[str, Any] = {"kind": list(KINDS), "below": [], "data": [], "elsewhere": [], "maps": [], "steps": steps}
    for kind in KINDS:
        with torch.enable_grad():
            energy = train_energy(kind, steps, seed)
        here, there = energy(data), energy(other)
        found["below"].append(float((here[:, None] < there).float().mean()))
        found["data"].append(float(here.median()))
        found["elsewhere"].append(float(there.median()))
        found["maps"].append(energy(cover(BOX, CELLS)[0].float()).view(CELLS, CELLS).tolist())
    return found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    gaps = [b - a for a, b in zip(numbers["data"], numbers["elsewhere"], strict=True)]
    return {"data below": min(numbers["below"]), "gap of medians": min(gaps)}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The energy maps; dark is low."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(10, 3), layout="constrained")
    for axes, kind, values in zip(fig.subplots(1, 3), numbers["kind"], numbers["maps"], strict=True):
        shown = torch.tensor(values)
        axes.imshow(shown.clamp(max=float(shown.quantile(0.8))), origin="lower", extent=BOX, cmap="Blues_r")
        axes.set_title(kind)
    return fig
