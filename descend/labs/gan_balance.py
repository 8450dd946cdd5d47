"""Why two players that learn against each other are hard to train: circles, losses that tell little, and balance.

    bilinear    min_x max_y x y from (1, 0): both at once with step η multiply the radius by √(1 + η²); in turns it
                stays within bounds, and never arrives
    losses      of both players on a ring of four Gaussians, as means over twentieths of the training: how often each
                rises from one to the next, while the generator gets better
    balance     overlap with the ring (share of an even spread over all modes) after as many steps, when rates or
                numbers of moves are unequal: the rate of one player ten times the other's, or five moves for one

Systems: mode-collapse
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.streams.arrays import Drawn
from descend.data.toys.mixture import Mixture, ring
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.labs._evidence import Above, AtLeast, AtMost, Below
from descend.metrics.modes import Modes
from descend.models.gan import Discriminator, GANConfig, Generator
from descend.ops.adversarial_game import step_at_once, step_in_turns
from descend.optim.rules import Adam
from descend.optim.schedules import Constant
from descend.tasks.adversarial import Adversarial, GameRules

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.45", "S940-DLD.114")
PRINTED = (
    "D or G may overpower the other; results are sensitive to hyperparameters; losses rise and fall"
    " without saying who learns."
)
CLAIM = (
    "In a game the losses rise and fall without telling who learns; simultaneous steps on xy spiral outwards by"
    " sqrt(1 + eta^2), and unequal rates or numbers of moves decide whether a GAN learns at all."
)
PREDICTIONS = (
    AtMost(
        "growth off",
        1e-9,
        "Relative distance of the radius's growth from √(1 + η²) with simultaneous steps.",
    ),
    Above(
        "least in turns",
        0.9,
        "The least radius when the players take turns: it stays within bounds.",
    ),
    Below("most in turns", 1.1, "The largest radius then."),
    AtLeast(
        "balanced game learns",
        0.3,
        "Overlap with the ring after the balanced game less that before.",
    ),
    AtLeast(
        "losses rise",
        0.1,
        "The share of pieces in which a loss rises, the lesser of both players.",
    ),
    AtLeast("imbalance costs", 0.3, "The best overlap less the worst of the unequal games."),
)
SCOPE = "min max xy, and a ring of four Gaussians with small networks."
ETA, TURNS = 0.1, 100
MODES, SIGMA, WIDTH, SEEN, PARTS = 4, 0.1, 64, 64, 20
BUDGET = 30.0
PRICE = 25  # steps of every game that a second of one core buys
ENOUGH = 500  # steps below which nothing is said
RATE = 1e-3
GAMES: dict[str, tuple[float, float, int, int]] = {
    "balanced": (RATE, RATE, 1, 1),
    "d rate ×10": (10 * RATE, RATE, 1, 1),
    "g rate ×10": (RATE, 10 * RATE, 1, 1),
    "d moves ×5": (RATE, RATE, 5, 1),
    "g moves ×5": (RATE, RATE, 1, 5),
}
"""Name -> rate of d, rate of g, moves of d, moves of g."""


def spiral() -> tuple[list[float], list[float]]:
    """Radii of the bilinear game, at once and in turns."""
    radii = []
    for step in (step_at_once, step_in_turns):
        x, y = torch.tensor([1.0, 0.0], dtype=torch.float64)
        radii.append([1.0])
        for _ in range(TURNS):
            x, y = step(x, y, ETA)
            radii[-1].append(float(torch.hypot(x, y)))
    return radii[0], radii[1]


def play(name: str, steps: int, seed: int, mixture: Mixture) -> tuple[float, float, list[list[float]]]:
    """Overlap before and after, and both losses over training."""
    lr_d, lr_g, d_moves, g_moves = GAMES[name]
    torch.manual_seed(seed)
    g, d = Generator(GANConfig(2, 2, WIDTH, 2)), Discriminator(2, WIDTH, 2)

    def draw(random: torch.Generator, n: int) -> dict[str, Tensor]:
        return {"x": mixture.sample(n, random)[0], "z": torch.randn(n, 2, generator=random)}

    task = Adversarial(g, d, Modes(mixture.mu, SIGMA), GameRules(d_moves=d_moves, g_moves=g_moves))
    batch = SEEN * task.rules.parts
    rules = {"d": Adam(lr_d, (0.5, 0.999)), "g": Adam(lr_g, (0.5, 0.999))}
    valid = draw(torch.Generator().manual_seed(seed + 10_000), 2500)
    parts = Parts(task, g, Drawn(draw, batch, seed), [valid], rules)  # type: ignore[arg-type]
    loop = Loop(steps, batch, ema=0.98, seed=seed, precision="float32", compile="off")
    training = Training(parts, loop, Constant(), World())
    before = training.evaluate()["overlap"]
    told = [training.advance() for _ in range(steps)]
    size = max(1, steps // PARTS)
    means = [
        [sum(one[loss] for one in told[i : i + size]) / size for i in range(0, size * PARTS, size)]
        for loss in ("loss_d", "loss_g")
    ]
    return before, training.evaluate()["overlap"], means


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Radii, how often losses rise, and what becomes of every game."""
    steps = max(PARTS, round(PRICE * budget))
    mixture = ring(MODES, 2.0, SIGMA)
    at_once, in_turns = spiral()
    found = {name: play(name, steps, seed, mixture) for name in GAMES}
    before, _, losses = found["balanced"]
    rises = [sum(b > a for a, b in pairwise(curve)) / (PARTS - 1) for curve in losses]
    return {
        "game": list(GAMES),
        "overlap": [after for _, after, _ in found.values()],
        "steps": steps,
        "overlap_before": before,
        "growth": (at_once[-1] / at_once[0]) ** (1 / TURNS),
        "least_in_turns": min(in_turns),
        "most_in_turns": max(in_turns),
        "rising_d": rises[0],
        "rising_g": rises[1],
        "losses": losses,
        "radii": [at_once, in_turns],
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    exact = math.sqrt(1 + ETA**2)
    return {
        "growth off": abs(numbers["growth"] - exact) / exact,
        "least in turns": numbers["least_in_turns"],
        "most in turns": numbers["most_in_turns"],
        "balanced game learns": numbers["overlap"][0] - numbers["overlap_before"],
        "losses rise": min(numbers["rising_d"], numbers["rising_g"]),
        "imbalance costs": max(numbers["overlap"]) - min(numbers["overlap"][1:]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Radii of the bilinear game, losses of the balanced one, and overlaps."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.4), layout="constrained")
    first, second, third = fig.subplots(1, 3)
    for radii, name in zip(numbers["radii"], ("at once", "in turns"), strict=True):
        first.plot(radii, label=name)
    first.set_title("radius of the game xy", fontsize=10, loc="left", fontweight="bold")
    first.legend(frameon=False)
    for curve, name in zip(numbers["losses"], ("discriminator", "generator"), strict=True):
        second.plot(curve, "o-", label=name)
    second.set_title("losses, balanced", fontsize=10, loc="left", fontweight="bold")
    second.legend(frameon=False)
    third.barh(numbers["game"], numbers["overlap"], color="#2b6cd8")
    third.set_title("overlap with the ring", fontsize=10, loc="left", fontweight="bold")
    for axes in (first, second, third):
        axes.spines[["top", "right"]].set_visible(False)
    return fig
