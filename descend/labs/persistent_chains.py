"""Contrastive divergence with one step, with ten, and with chains that persist: which distribution is learned.

    bits      12 bits, all alike but for 8% that are turned: two modes, all 0 and all 1. A restricted Boltzmann machine,
              by CD-1, CD-10 and PCD with one round of Gibbs sampling a step
    plane     two Gaussians at (±1.5, 0) of width 0.3. An energy network, by CD-1 and CD-10 with Langevin steps

Where all states can be listed, or integrated on a grid, the likelihood is known: measured is the negative
log-likelihood above the entropy of the data. Short chains from the data never visit what the machine believes far from
them; chains that persist do, at the price of CD-1.
In the plane CD-1 does as well as CD-10: with Langevin steps it is close to score matching, which fits the slope
wherever there are data, and a smooth network does the rest.

Systems: contrastive-divergence, persistent-contrastive-divergence
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.data.streams.arrays import Drawn
from descend.data.toys.densities import Gaussians, cover, entropy
from descend.data.toys.mixture import Mixture
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.labs._evidence import Below
from descend.models.energy_network import EnergyNetwork, EnergyNetworkConfig
from descend.models.rbm import RBM, RBMConfig
from descend.ops.energy.gibbs import gibbs, log_partition
from descend.optim.rules import SGD, Adam
from descend.optim.schedules import Linear
from descend.tasks.boltzmann import BoltzmannDivergence, PersistentBoltzmann
from descend.tasks.energy import ContrastiveDivergence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.100", "DLN-C.102")
PRINTED = (
    "CD-K starts at the data, K as low as 1; its negatives stay near the data. Persistent chains"
    " continue from a replay buffer."
)
CLAIM = (
    "On data with two modes, chains that persist learn a better distribution than CD-1 at the same cost, and about as"
    " good a one as CD-10."
)
PREDICTIONS = (
    Below("excess of PCD", 1 / 3, "PCD's likelihood lost, as a share of CD-1's."),
    Below(
        "PCD over CD-10",
        0.1,
        "Nats by which PCD loses more than CD-10, at a tenth of the cost.",
    ),
    Below("plane", 0.15, "Nats above the entropy, the worse energy of the plane."),
)
SCOPE = "12 bits with two modes, a machine of 12 hidden units, and two Gaussians of the plane."
BITS, HIDDEN, TURNED, BATCH = 12, 12, 0.08, 128
PLACE, WIDTH, ETA, REACH, CELLS = 1.5, 0.3, 0.02, 4.0, 80
METHODS = ("cd-1", "cd-10", "pcd-1")
BUDGET = 8.0
PRICE = 150  # steps of each training of bits that a second of one core buys; a quarter as many in the plane
LEAST = 1000


def list_bits() -> tuple[Tensor, Tensor]:
    """All states (2^n, n), and the probability of each."""
    states = torch.tensor(list(product((0.0, 1.0), repeat=BITS)))
    ones = states.sum(1)
    p = [TURNED**k * (1 - TURNED) ** (BITS - k) for k in (ones, BITS - ones)]
    return states, (p[0] + p[1]) / 2


def train_task(task: Task, model: RBM | EnergyNetwork, draw: Any, rule: Any, steps: int, seed: int) -> None:
    """By the engine, with a rate that falls to 0."""
    parts = Parts(task, model, Drawn(draw, BATCH, seed), (), {"model": rule})
    training = Training(
        parts, Loop(steps, batch=BATCH, seed=seed, precision="float32", compile="off"), Linear(), World()
    )
    for _ in range(steps):
        training.advance()


def measure_bits(method: str, steps: int, seed: int) -> float:
    """NLL above the entropy, by listing all states."""
    torch.manual_seed(seed)
    (states, p), model, rounds = list_bits(), RBM(RBMConfig(shape=(BITS,), hidden=HIDDEN)), int(method.split("-")[1])

    def draw(random: torch.Generator, n: int) -> Batch:
        return {
            "x": states[torch.multinomial(p, n, replacement=True, generator=random)],
            "for_hidden": torch.rand(n, rounds, HIDDEN, generator=random),
            "for_visible": torch.rand(n, rounds, BITS, generator=random),
            "chain": torch.arange(n) % BATCH,
        }

    start = (torch.rand(BATCH, BITS, generator=torch.Generator().manual_seed(seed)) < 0.5).float()
    task = PersistentBoltzmann(model, start) if method.startswith("pcd") else BoltzmannDivergence(model)
    train_task(task, model, draw, SGD(0.1, momentum=0.0), steps, seed)
    with torch.no_grad():
        free = model(states)
        return float((p * (free + log_partition(free) + p.log())).sum())


def measure_plane(rounds: int, steps: int, seed: int) -> tuple[float, list[list[float]]]:
    """NLL above the entropy, by a grid, and the density for the figure."""
    torch.manual_seed(seed)
    mu = torch.tensor([[-PLACE, 0.0], [PLACE, 0.0]])
    density = Gaussians(Mixture(torch.tensor([0.5, 0.5]), mu, torch.full((2,), WIDTH)))
    model = EnergyNetwork(EnergyNetworkConfig(width=48, depth=3, reach=1.5))

    def draw(random: torch.Generator, n: int) -> Batch:
        return {"x": density.sample(n, random), "noise": torch.randn(n, rounds, 2, generator=random)}

    task = ContrastiveDivergence(model, lambda e: torch.zeros(()), ETA, 1e-3)
    train_task(task, model, draw, Adam(1e-2), steps, seed)
    points, area = cover((-REACH, REACH, -REACH, REACH), CELLS)
    with torch.no_grad():
        p = gibbs(model(points.float()).double(), area)
    nll = float(-(density.log_prob(points).exp() * p.log()).sum() * area)
    return nll - entropy(density, 300), p.view(CELLS, CELLS).tolist()


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Each method with the same steps."""
    steps = max(2, round(PRICE * budget))
    bits = [measure_bits(method, steps, seed) for method in METHODS]
    (one, first), (ten, second) = (measure_plane(rounds, max(2, steps // 4), seed) for rounds in (1, 10))
    return {"method": list(METHODS), "excess": bits, "plane": [one, ten], "steps": steps, "maps": [first, second]}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    one, ten, kept = numbers["excess"]
    return {"excess of PCD": kept / one, "PCD over CD-10": kept - ten, "plane": max(numbers["plane"])}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Excess of each method, and the two densities of the plane."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.2), layout="constrained")
    left, *others = fig.subplots(1, 3)
    left.bar(numbers["method"], numbers["excess"])
    left.set_title("bits: NLL above the entropy")
    for axes, name, density in zip(others, ("CD-1", "CD-10"), numbers["maps"], strict=True):
        axes.imshow(torch.tensor(density), origin="lower", extent=(-REACH, REACH, -REACH, REACH), cmap="Blues")
        axes.set_title(f"plane, {name}")
    return fig
