"""A generator of numbers, trained directly on a distance between distributions: no adversary, no likelihood.

    repeat   z ~ N(0, 1),  x = g(z),  real numbers ~ N(2, 0.5²),  one step down a distance of the two batches

    moments          KL(N(m, v) ‖ N(2, 0.5²)) of the batch's mean and variance, in closed form
    kl               ∫ q log(q/p̂) of kernel estimates of both batches
    total variation  ½ ∫ |q − p̂|

g is a small network that begins near 0. In one dimension each of the three works; in many dimensions no density can be
estimated from a batch, which is why GANs take the indirect way.

Systems: push-forward-generator
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.engine.minimise import minimise
from descend.labs._evidence import Below
from descend.losses.distribution import kernel_density, kl_divergence, moment_kl, total_variation
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.37",)
PRINTED = (
    "A generator is trained by gradient steps on an estimated distance between distributions, KL or"
    " total variation; shown on a 1-D Gaussian target."
)
CLAIM = "A generator of numbers learns a Gaussian by descending KL or total variation between batches directly."
PREDICTIONS = (
    Below("mean off", 0.1, "The largest distance of a mean from 2, of three trainings."),
    Below("deviation off", 0.1, "The largest distance of a standard deviation from 0.5."),
    Below("distance left", 0.1, "The last distance as a share of the first, the worst of three."),
)
SCOPE = "One dimension. In many dimensions no density can be estimated from a batch, which is why GANs exist."
MU, S, BATCH, WIDTH, RATE = 2.0, 0.5, 256, 0.15, 1e-2
BUDGET = 3.0
PRICE = 130  # steps of each of the three trainings that a second of one core buys
LEAST = 200  # steps below which nothing is said
GRID = torch.linspace(-3, 7, 201)


def estimate(x: Tensor) -> Tensor:
    """The kernel estimate of a batch, on the grid."""
    return kernel_density(x, GRID, WIDTH)


DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "moments": lambda real, made: moment_kl(made, MU, S),
    "kl": lambda real, made: kl_divergence(estimate(real), estimate(made), GRID),
    "total variation": lambda real, made: total_variation(estimate(real), estimate(made), GRID),
}


def train_generator(distance: Callable[[Tensor, Tensor], Tensor], steps: int, seed: int) -> dict[str, Any]:
    """Mean, deviation and distance of 10,000 new numbers, before and after."""
    torch.manual_seed(seed)
    g = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    random = torch.Generator().manual_seed(seed)

    def draw(n: int) -> tuple[Tensor, Tensor]:
        return MU + S * torch.randn(n, generator=random), g(torch.randn(n, 1, generator=random))[:, 0]

    def judge() -> tuple[float, Tensor]:
        with torch.no_grad():
            real, made = draw(10_000)
            return float(distance(real, made)), made

    first, _ = judge()
    minimise(g, lambda: distance(*draw(BATCH)), steps, Adam(RATE), Linear())
    last, made = judge()
    return {"first": first, "last": last, "mean": float(made.mean()), "std": float(made.std()),
            "sample": made[:1000].tolist()}  # fmt: skip


def measure(seed: int, budget: float) -> dict[str, Any]:
    """One generator for each distance."""
    steps = max(2, round(PRICE * budget))
    found = [train_generator(distance, steps, seed) for distance in DISTANCES.values()]
    columns = {key: [one[key] for one in found] for key in found[0]}
    return {"distance": list(DISTANCES), **columns, "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "mean off": max(abs(m - MU) for m in numbers["mean"]),
        "deviation off": max(abs(s - S) for s in numbers["std"]),
        "distance left": max(b / a for a, b in zip(numbers["first"], numbers["last"], strict=True)),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Histograms of what each generator makes, over the target."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3), layout="constrained")
    target = torch.distributions.Normal(MU, S).log_prob(GRID).exp()
    for axes, name, sample in zip(fig.subplots(1, 3), numbers["distance"], numbers["sample"], strict=True):
        axes.hist(sample, 40, (0, 4), density=True)
        axes.plot(GRID, target, color="black")
        axes.set_xlim(0, 4)
        axes.set_title(name)
    return fig
