"""Annealed against plain Langevin dynamics: how many points belong to each of two modes that are far apart.

    data      0.2 N((−3, −3), I) + 0.8 N((3, 3), I)
    plain     at the least noisy level alone, from uniform places: no chain ever crosses between the modes
    annealed  12 levels from σ = 8 to 0.5, from the noisiest on; the same number of steps in all

With the exact scores of the smoothed mixture, and with those of a network trained at all levels. Measured: the share of
points near the rare mode; 0.2 is right.

Systems: annealed-langevin
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.toys.mixture import Mixture
from descend.engine.minimise import minimise
from descend.labs._evidence import AtLeast, AtMost
from descend.losses.score_matching import denoising_by_noise
from descend.models.score_network import ScoreNetwork, ScoreNetworkConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine
from descend.sampling.langevin import annealed_langevin, langevin, level_rates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.155",)
PRINTED = (
    "Langevin dynamics runs level after level, from the noisiest to the cleanest, several steps at each (no number)."
)
CLAIM = "Annealed Langevin dynamics finds the weights of two modes that are far apart within 0.02; plain does not."
PREDICTIONS = (
    AtMost(
        "annealed error",
        0.02,
        "The larger distance of the annealed share from 0.2, exact and learned score; more refutes that"
        " it finds the weights.",
    ),
    AtLeast(
        "plain error",
        0.1,
        "The smaller distance of the plain share from 0.2; less would mean that chains cross without the levels.",
    ),
)
SCOPE = "Two Gaussians of the plane, 12 levels, exact scores and those of a small network."
SHARE, PLACE, POINTS, BATCH = 0.2, 3.0, 4000, 2048
CONFIG = ScoreNetworkConfig()
BUDGET = 30.0
PRICE = 170  # training steps that a second of one core buys
LEAST = 4000


def smooth(sigma: float) -> Mixture:
    mu = torch.tensor([[-PLACE, -PLACE], [PLACE, PLACE]])
    return Mixture(torch.tensor([SHARE, 1 - SHARE]), mu, torch.full((2,), (1 + sigma**2) ** 0.5))


def train_network(steps: int, seed: int) -> ScoreNetwork:
    torch.manual_seed(seed)
    model, random, mixture = ScoreNetwork(CONFIG), torch.Generator().manual_seed(seed), smooth(0.0)

    def loss() -> Tensor:
        x, noise = mixture.sample(BATCH, random)[0], torch.randn(BATCH, 2, generator=random)
        level = torch.randint(CONFIG.levels, (BATCH,), generator=random)
        return denoising_by_noise(model(x + model.sigma(level) * noise, level), noise, 1.0).mean()

    minimise(model, loss, steps, Adam(4e-3), Cosine(warmup=50, floor=0.0))
    return model.eval()


def sample(score: Callable[[Tensor, int], Tensor], sizes: tuple[float, ...], seed: int) -> tuple[float, float, Tensor]:
    """The share of the rare mode, annealed and plain, and the annealed points."""
    random, rates = torch.Generator().manual_seed(seed), level_rates(sizes, CONFIG.eta * sizes[-1] ** 2)
    noise = lambda: torch.randn(POINTS, 2, generator=random)
    start = (sizes[0] ** 2 + 1) ** 0.5 * noise()
    noises = ((noise() for _ in range(CONFIG.steps)) for _ in sizes)
    annealed = annealed_langevin(score, start, noises, rates)
    last = len(sizes) - 1
    box = 2 * PLACE * (2 * torch.rand(POINTS, 2, generator=random) - 1)
    steps = CONFIG.steps * len(sizes)
    plain = langevin(lambda x: score(x, last), box, (noise() for _ in range(steps)), rates[-1])
    shares = [float((x.sum(1) < 0).float().mean()) for x in (annealed, plain)]
    return shares[0], shares[1], annealed


@torch.no_grad()
def measure(seed: int, budget: float) -> dict[str, Any]:
    """Shares with exact and with learned scores."""
    steps = max(2, round(PRICE * budget))
    with torch.enable_grad():
        model = train_network(steps, seed)
    exact = [smooth(sigma) for sigma in model.sizes]
    one = sample(lambda x, level: exact[level].score(x), model.sizes, seed)
    two = sample(model.score, model.sizes, seed)
    return {
        "score": ["exact", "learned"],
        "annealed": [one[0], two[0]],
        "plain": [one[1], two[1]],
        "share": SHARE,
        "steps": steps,
        "sample": two[2][:1000].tolist(),
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    share = numbers["share"]
    return {
        "annealed error": max(abs(found - share) for found in numbers["annealed"]),
        "plain error": min(abs(found - share) for found in numbers["plain"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Annealed samples of the learned score, and the shares."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = fig.subplots(1, 2)
    points = torch.tensor(numbers["sample"])
    left.plot(points[:, 0], points[:, 1], ".", markersize=2)
    left.set_aspect("equal")
    for shift, name in ((-0.2, "annealed"), (0.2, "plain")):
        right.bar([i + shift for i in range(2)], numbers[name], 0.4, label=name)
    right.axhline(numbers["share"], color="black")
    right.set_xticks([0, 1], numbers["score"])
    right.set_title("share of the rare mode")
    right.legend()
    return fig
