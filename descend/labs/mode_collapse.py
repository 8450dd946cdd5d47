"""Mode collapse on a ring of eight Gaussians: how many modes a generator covers, by the loss and by what helps it.

    plain         non-saturating; the generator moves three times as often as the discriminator, which it outruns
    minibatch     the same game, with a discriminator that sees how alike the points of a batch are
    conditional   the same game, and both players are told the mode that is wanted
    wgan-gp       Wasserstein loss with a gradient penalty, four moves of the critic for one of the generator
    spectral      hinge loss with spectral norms, two moves of the discriminator

    modes         of 8, those that have at least a tenth of an equal share of the points
    quality       share of points within 3σ of a mode
    counted first on points of the mixture itself (8 modes) and of a generator that makes one point only (1 mode)

All players have two hidden layers of 64 and train for as many steps; networks, rates (1e-3 to 2e-3) and the three moves
of the plain game are chosen so that the plain one collapses. Balanced and trained longer it can cover all modes, too
(`descend train gan-mixture`): collapse is what may happen, not what must.

Systems: mode-collapse, minibatch-discrimination
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.streams.arrays import Drawn
from descend.data.toys.mixture import Mixture, ring
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.labs._evidence import AtLeast, AtMost
from descend.losses.adversarial import Hinge, Wasserstein
from descend.losses.gradient_penalty import GradientPenalty
from descend.metrics.modes import Modes
from descend.models.conditional_gan import ConditionalDiscriminator, ConditionalGAN, ConditionalGANConfig
from descend.models.gan import Discriminator, GANConfig, Generator
from descend.nn.adversarial.spectral import normalize_spectrum
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.tasks.adversarial import Adversarial, GameRules

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.43", "DLN-C.44", "S940-DLD.114")
PRINTED = (
    "Different z map to few modes and training stalls; minibatch discrimination penalises samples"
    " that are alike; other losses stabilise."
)
CLAIM = (
    "A generator that outruns its discriminator collapses onto few modes of a ring; the same game with minibatch"
    " discrimination or with conditioning covers more, and so do Wasserstein and spectral games."
)
PREDICTIONS = (
    AtMost("modes, plain", 4, "Of 8, those that the plain game covers."),
    AtLeast("more modes", 2, "By how many modes each other game covers more, the least."),
    AtLeast("modes, minibatch", 7, "Those with minibatch discrimination."),
    AtLeast(
        "modes, stabilised",
        7,
        "Those of the better of the Wasserstein and the spectral game.",
    ),
)
CONTROLS = (
    AtLeast(
        "counter right",
        1,
        "1 where the counter finds 8 modes in the data and 1 in a single point.",
    ),
)
SCOPE = (
    "A ring of eight Gaussians, small networks; the plain game's rates and moves were chosen so"
    " that it collapses. It may, it need not."
)
MODES, RADIUS, SIGMA, WIDTH, LATENT, SEEN = 8, 0.8, 0.02, 64, 2, 64
TIMES, JUDGED = 4, 2500  # evaluations over training, points of each
BUDGET = 50.0
PRICE = 18  # steps of every game that a second of one core buys
ENOUGH = 800  # steps below which nothing is said


@dataclass(frozen=True)
class Variant:
    """A game: its rules, kernels of minibatch discrimination, rates and first moment's decay."""

    rules: GameRules
    kernels: int = 0
    lr: float = 1e-3
    betas: tuple[float, float] = (0.5, 0.999)


OUTRUN = GameRules(g_moves=3)
VARIANTS: dict[str, Variant] = {
    "plain": Variant(OUTRUN),
    "minibatch": Variant(OUTRUN, kernels=16),
    "conditional": Variant(OUTRUN),
    "wgan-gp": Variant(GameRules(Wasserstein(), GradientPenalty(1.0), d_moves=4), lr=2e-3, betas=(0.5, 0.9)),
    "spectral": Variant(GameRules(Hinge(), d_moves=2), lr=1e-3, betas=(0.0, 0.9)),
}


def players(name: str, kernels: int) -> tuple[nn.Module, nn.Module]:
    """Generator and discriminator of a variant."""
    if name == "conditional":
        config = ConditionalGANConfig(LATENT, MODES, (2,), WIDTH, 2)
        return ConditionalGAN(config), ConditionalDiscriminator(config)
    d = Discriminator(2, WIDTH, 2, kernels)
    return Generator(GANConfig(LATENT, 2, WIDTH, 2)), normalize_spectrum(d) if name == "spectral" else d


def play(name: str, steps: int, seed: int, mixture: Mixture) -> tuple[list[int], list[float]]:
    """Modes and quality of the averaged generator at some times of training."""
    variant = VARIANTS[name]
    torch.manual_seed(seed)
    g, d = players(name, variant.kernels)

    def draw(random: torch.Generator, n: int) -> dict[str, Tensor]:
        x, y = mixture.sample(n, random)
        return {"x": x, "y": y, "z": torch.randn(n, LATENT, generator=random), "u": torch.rand(n, generator=random)}

    judge = Modes(mixture.mu, SIGMA)
    given = ("y",) if name == "conditional" else ()
    task = Adversarial(g, d, lambda x, *_: judge(x), variant.rules, given=given)
    rule = Adam(variant.lr, variant.betas)
    batch = SEEN * variant.rules.parts
    valid = {**draw(torch.Generator().manual_seed(seed + 10_000), JUDGED)}
    parts = Parts(task, g, Drawn(draw, batch, seed), [valid], {"d": rule, "g": rule})  # type: ignore[arg-type]
    loop = Loop(steps, batch, ema=0.98, seed=seed, precision="float32", compile="off")
    training = Training(parts, loop, Linear(), World())
    modes: list[int] = []
    quality: list[float] = []
    for step in range(1, steps + 1):
        training.advance()
        if step % max(1, steps // TIMES) == 0 and len(modes) < TIMES:
            found = training.evaluate()
            modes.append(round(found["modes"]))
            quality.append(found["quality"])
    return modes, quality


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Modes and quality of every game over training, and of points whose modes are known."""
    steps = max(TIMES, round(PRICE * budget))
    mixture = ring(MODES, RADIUS, SIGMA)
    judge = Modes(mixture.mu, SIGMA)
    true = judge(mixture.sample(JUDGED, torch.Generator().manual_seed(seed))[0])
    one = judge(mixture.mu[:1].expand(JUDGED, 2))
    found = {name: play(name, steps, seed, mixture) for name in VARIANTS}
    return {
        "game": list(VARIANTS),
        "modes": [modes[-1] for modes, _ in found.values()],
        "quality": [quality[-1] for _, quality in found.values()],
        "steps": steps,
        "modes_of_data": int(true["modes"][0]),
        "modes_of_one_point": int(one["modes"][0]),
        "over_training": {name: {"modes": modes, "quality": quality} for name, (modes, quality) in found.items()},
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    modes = dict(zip(numbers["game"], numbers["modes"], strict=True))
    plain = modes.pop("plain")
    return {
        "modes, plain": plain,
        "more modes": min(modes.values()) - plain,
        "modes, minibatch": modes["minibatch"],
        "modes, stabilised": max(modes["wgan-gp"], modes["spectral"]),
        "counter right": float(numbers["modes_of_data"] == MODES and numbers["modes_of_one_point"] == 1),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Modes and quality over training."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.6), layout="constrained")
    for axes, what in zip(fig.subplots(1, 2), ("modes", "quality"), strict=True):
        for name, found in numbers["over_training"].items():
            values = found[what]
            steps = [numbers["steps"] * (i + 1) / len(values) for i in range(len(values))]
            axes.plot(steps, values, "o-", label=name)
        axes.set_xlabel("step")
        axes.set_title(what, fontsize=11, loc="left", fontweight="bold")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return fig
